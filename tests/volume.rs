//! What the driver does with volumes, on real LVM: each rule by name.

mod capacity;
mod create;
mod dead;
mod drain;
mod format;
mod gpt;
mod lifecycle;
mod publish;
mod stage;
mod support;
