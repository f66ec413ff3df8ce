use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::exec::{ExecError, Output};
use crate::types::{Bytes, FsType};

/// A file system that cannot be made, read, checked or grown.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// A program did not run, or ended badly.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A program answered in a way that is not known of it.
    #[error("{command}: {what} is not an answer that this program is known to give: {found}")]
    Unexpected {
        /// The command.
        command: String,
        /// Which part of the answer: its exit code, a line of its output.
        what: String,
        /// The end of what it said.
        found: String,
    },
    /// A device does not hold the file system that it should.
    #[error("{} holds no {expected} file system: {reason}", .device.display())]
    NotThis {
        /// The device.
        device: PathBuf,
        /// The file system that was meant.
        expected: FsType,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is to be made or checked, and somebody uses it.
    #[error("{} is mounted or otherwise in use: it is left as it is", .device.display())]
    InUse {
        /// The device.
        device: PathBuf,
    },
    /// A file system reaches beyond the end of its device: its last part is missing.
    #[error("the file system on {} has {size}, and the device only {available}: do not use it", .device.display())]
    CutOff {
        /// The device.
        device: PathBuf,
        /// The size of the file system.
        size: Bytes,
        /// The size of the device.
        available: Bytes,
    },
    /// A file system did not become as large as its device.
    #[error("the file system on {} has grown from {from} to {to} only, of {available}", .device.display())]
    Short {
        /// The device.
        device: PathBuf,
        /// Its size before.
        from: Bytes,
        /// Its size now.
        to: Bytes,
        /// The size of the device.
        available: Bytes,
    },
    /// A file system has noted an error, so that the kernel does not let it grow before it was checked.
    #[error("the file system has noted an error, and was not checked since")]
    Unchecked,
    /// A file system or a disk does not answer.
    #[error("{}: no answer within {} s", .path.display(), .limit.as_secs())]
    Overdue {
        /// What was asked.
        path: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The kernel refused.
    #[error("{}: {what}", .path.display())]
    Io {
        /// The device or mount point.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The thread that did the work ended before it.
    #[error("the work on a file system was cut short")]
    Worker(#[source] tokio::task::JoinError),
}

impl FsError {
    /// Something that the kernel refused.
    pub(super) fn io(path: &Path, what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), what, source: source.into() }
    }

    /// A device that does not hold the file system that it should.
    pub(super) fn not_this(device: &Path, expected: FsType, reason: &'static str) -> Self {
        Self::NotThis { device: device.to_owned(), expected, reason }
    }

    /// An exit code that the manual does not give, or a program that a signal ended.
    pub(super) fn unexpected_code(command: String, output: &Output) -> Self {
        let what = output.code.map_or_else(|| "an end by a signal".to_owned(), |code| format!("code {code}"));
        Self::Unexpected { command, what, found: last_words(output) }
    }
}

/// How much of a program's output goes into a message, in characters.
const SHOWN: usize = 1024;

/// The end of what a program said, on both streams.
pub(super) fn last_words(output: &Output) -> String {
    let said = format!("{}\n{}", output.stderr.trim(), output.text().trim());
    let said = said.trim();
    let skip = said.chars().count().saturating_sub(SHOWN);
    said.chars().skip(skip).collect()
}
