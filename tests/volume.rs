//! What the driver does with volumes, on real LVM: each rule by name.

mod capacity;
mod create;
mod dead;
mod delete;
mod drain;
mod expand;
mod filesystems;
mod format;
mod gpt;
mod ids;
mod lifecycle;
mod memory;
mod publish;
mod secrets;
mod stage;
mod support;
mod unallocatable;
