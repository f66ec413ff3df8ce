use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::types::DeviceNumber;

/// A mount that cannot be made, taken away or understood.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// Something is open in it, or its user's working directory is there.
    #[error("{} is in use and stays mounted: end what uses it, or try again once it has ended", .target.display())]
    Busy {
        /// The mount point.
        target: PathBuf,
    },
    /// Something else is mounted there.
    #[error("{} shows {found}, not {expected}: it is not touched", .target.display())]
    Foreign {
        /// The mount point.
        target: PathBuf,
        /// The device that was meant.
        expected: DeviceNumber,
        /// The device that the mount shows.
        found: DeviceNumber,
    },
    /// The kernel said that it mounted, and the mount table does not show it. What was mounted was
    /// taken away again.
    #[error("{} was mounted, and then showed {found} and not {expected}", .target.display())]
    Unproven {
        /// The mount point.
        target: PathBuf,
        /// The device that was mounted.
        expected: DeviceNumber,
        /// What the mount table shows.
        found: String,
    },
    /// A path leads to another device than it did.
    #[error("{} leads to {found} now and not to {expected}: it was not mounted", .path.display())]
    Moved {
        /// The path.
        path: PathBuf,
        /// The device that was meant.
        expected: DeviceNumber,
        /// Where it leads.
        found: String,
    },
    /// What is at a target is not what may be mounted over or taken away there.
    #[error("{} is {found}, where {expected} should be: remove it by hand if nobody needs it", .target.display())]
    WrongKind {
        /// The target.
        target: PathBuf,
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A look at own targets took too long.
    #[error("{}: no answer within {} s; the file system above it may be dead", .path.display(), .limit.as_secs())]
    Overdue {
        /// What was looked at.
        path: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The kernel refused.
    #[error("{}: {what}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The thread that did the work ended before it.
    #[error("the work on a mount was cut short")]
    Worker(#[source] tokio::task::JoinError),
}

impl MountError {
    /// Whether there is nothing at the path.
    pub(super) fn is_absent(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), NotFound | NotADirectory))
    }

    /// Something that the kernel refused.
    pub(super) fn io(path: &Path, what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), what, source: source.into() }
    }
}
