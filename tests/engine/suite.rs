//! The LVM engine on real LVM: each test has a guest of its own, with disks of its own.

mod basics;
mod contract;
mod disks;
mod ends;
mod figures;
mod hangs;
mod host;
mod locks;
mod looks;
mod shell;
mod support;
mod words;

pub(crate) use figures::fill;
