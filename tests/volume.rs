//! What the driver does with volumes, on real LVM: each rule by name.

mod capacity;
mod create;
mod lifecycle;
