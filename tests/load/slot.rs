//! The volumes that there can be: each number has a name, a kind, and paths of its own.

use std::path::PathBuf;

use super::SLOTS;
use crate::driver::{Client, MIB, Mode, Volume, pv_name};

/// The size of an extent, which LVM chooses unless told.
pub(super) const EXTENT: u64 = 4 * MIB;

/// One of the [`SLOTS`] volumes that there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(pub(super) usize);

impl Slot {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..SLOTS).map(Self)
    }

    /// The name of its volume.
    pub(super) fn name(self) -> String {
        pv_name(self.0)
    }

    /// What its volume is. Those that must be large are few.
    pub(super) const fn mode(self) -> Mode {
        match self.0 % 16 {
            6 => Mode::Xfs,
            14 => Mode::Btrfs,
            even if even.is_multiple_of(2) => Mode::Ext4,
            _ => Mode::Block,
        }
    }

    /// The sizes that its volume is asked for with, in extents; it grows to at most twice the largest.
    pub(super) const fn extents(self) -> std::ops::Range<u64> {
        match self.mode() {
            Mode::Ext4 => 4..7,
            Mode::Xfs => 75..78,
            Mode::Btrfs => 64..67,
            Mode::Block => 1..4,
        }
    }

    /// Its volume, asked of that driver.
    pub(super) fn volume(self, client: &Client, vg: &str) -> Volume {
        Volume::of_group(client, vg, &self.name(), self.mode())
    }

    /// The path of its device, where that exists.
    pub(super) fn device(self) -> PathBuf {
        crate::crash::bench::device(&self.name())
    }

    /// Where it is staged and where it is published.
    pub(super) fn places(self) -> [String; 2] {
        ["staging", "target"].map(|place| format!("/var/lib/kubelet/{}-{place}", self.name()))
    }
}
