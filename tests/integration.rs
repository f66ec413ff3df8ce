//! The one integration binary: the rules of the house, and the driver on real LVM.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that meets what it does not expect fails"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start the driver, and the programs that look at what it did"
)]

mod bench;
mod command_line;
mod crash;
mod demo;
mod deploy;
mod driver;
mod ending;
#[path = "engine/suite.rs"]
mod engine;
mod group;
mod known_faults;
mod layers;
mod link;
mod load;
mod metrics;
mod people;
mod readme;
mod router;
#[path = "storage/bench.rs"]
mod storage_bench;
#[path = "storage/device.rs"]
mod storage_device;
#[path = "storage/fs.rs"]
mod storage_fs;
#[path = "storage/mount.rs"]
mod storage_mount;
mod volume;
#[path = "wire/check.rs"]
mod wire;
mod wishes;
