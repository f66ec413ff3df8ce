//! What people are shown of the volumes and groups of this machine, with or without a driver beside; and of the
//! groups that the cluster misses.
//!
//! It looks, and changes nothing. LVM is asked in processes of their own, without its locks, so that neither
//! a driver nor a hanging command is in the way; what a file system holds it tells itself, within seconds or
//! not at all. All that is known of a volume comes from its tags and from the kernel.

mod advice;
mod check;
mod groups;
mod lost;
mod machine;
mod manifests;
mod place;
mod table;
mod volumes;

pub use check::{Finding, check};
pub use groups::{GroupRow, groups};
pub use lost::{Missing, NotLost, declared, missing};
pub use machine::{InspectError, Machine, Scope};
pub use manifests::{ReclaimPolicy, manifests};
pub use place::Place;
pub use table::table;
pub use volumes::{VolumeRow, volumes};
