//! The driver, LVM, mkfs and the machine, killed at every step. Whatever was cut off, the same call again
//! ends well: nothing is lost or leaked, nothing is formatted twice, nothing stays suspended.
//!
//! ```text
//!   kills, cuts ── the driver, or the machine's power, at each point of an operation   (trap, child)
//!   order       ── what each disk holds at each moment, had the power been cut then   (trap, recorder)
//!   lvm         ── lvm, at each of its device-mapper calls                             (strace)
//!   mounts      ── the driver, at each of its changes to the mount table               (strace)
//!   unfinished  ── driver killed, and calls arriving, while a volume is being prepared
//! ```

pub(crate) mod bench;
mod child;
mod cuts;
mod drain;
mod kills;
mod lvm;
mod mkfs;
mod mounts;
mod order;
mod overlap;
mod recorder;
mod slow;
mod strace;
mod trap;
mod unfinished;
mod user;

use std::path::PathBuf;

use crate::driver::pv_name as name;

/// Where that volume is staged.
fn staging(number: usize) -> PathBuf {
    crate::driver::folder(&format!("staging-{number}"))
}

/// Holds that these volumes are there, staged once at least, of that size, and nothing else.
#[track_caller]
fn holds_volumes(numbers: impl IntoIterator<Item = usize>, size: u64) {
    let names: Vec<String> = numbers.into_iter().map(name).collect();
    bench::holds_exactly(names.iter().map(|name| (name.as_str(), size, "u")));
}

/// The id of that volume.
fn id(number: usize) -> String {
    format!("{}/{}", crate::driver::report("vgs", "vg_uuid", crate::driver::VG)[0], name(number))
}
