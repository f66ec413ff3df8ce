use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::types::{DeviceNumber, DmUuid};

/// A block device that cannot be used, or is not the one that was meant.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The volume is active, and nothing under `/dev` leads to it.
    #[error(
        "the volume is active as {kernel} ({number}), but no node in /dev leads to it: \
         run vgmknodes on the node, or look why udev makes none"
    )]
    NoNode {
        /// Its number.
        number: DeviceNumber,
        /// The kernel's name for it, as in `dm-3`.
        kernel: String,
    },
    /// A path leads to another device than it did.
    #[error("{} leads to {found} now and not to {expected}: nothing was done to it", .path.display())]
    Moved {
        /// The path.
        path: PathBuf,
        /// The device that was meant.
        expected: DeviceNumber,
        /// Where it leads: a number, or that it is no block device.
        found: String,
    },
    /// A number belongs to another volume than it did.
    #[error("{number} is {found} now and not {expected}: nothing was done to it")]
    Replaced {
        /// The number.
        number: DeviceNumber,
        /// The volume that was meant.
        expected: DmUuid,
        /// What has that number.
        found: DmUuid,
    },
    /// It was there a moment ago.
    #[error("device {number} is gone: it was deactivated or removed meanwhile")]
    Gone {
        /// Its number.
        number: DeviceNumber,
    },
    /// Reading or writing would wait without end.
    #[error("{} ({number}) is suspended: it must be resumed first (lvchange --refresh)", .path.display())]
    Suspended {
        /// The node.
        path: PathBuf,
        /// Its number.
        number: DeviceNumber,
    },
    /// Somebody has it open for himself alone: it is mounted, or part of another device.
    #[error("{} is in use: it is mounted, or another device lies on it", .path.display())]
    InUse {
        /// The node.
        path: PathBuf,
    },
    /// A range that no device of this size has, or that is not made of whole sectors.
    #[error("bytes {} to {} are not whole 512-byte sectors of a device of {size} bytes", .range.start, .range.end)]
    Range {
        /// The range that was asked for, in bytes.
        range: Range<u64>,
        /// The size of the device, in bytes.
        size: u64,
    },
    /// The kernel's description of a device reads unlike any that is known.
    #[error("{} holds {found:?}, which makes no sense there", .path.display())]
    Unreadable {
        /// The file in sysfs.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
    /// The kernel refused.
    #[error("{}: {what}", .path.display())]
    Io {
        /// The file or device.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The thread that did the work ended before it.
    #[error("the work on a block device was cut short")]
    Worker(#[source] tokio::task::JoinError),
}

impl DeviceError {
    /// Something that the kernel refused: `what` finishes the sentence "cannot be …".
    pub(super) fn io(path: &Path, what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), what, source: source.into() }
    }
}
