use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Command, PvRow, Reply};
use crate::exec::ExecError;
use crate::types::VgName;

/// Runs LVM commands on one volume group, seeing that group's devices and no others.
///
/// An engine has no opinion: it does not retry, and does not decide who may write when. Commands given
/// to it at the same time run one after another.
#[async_trait::async_trait]
pub trait Engine: Send + Sync {
    /// Runs one command to its end. A command that LVM refused is a [`Reply`] too.
    ///
    /// A change is never interrupted: when the caller's future is dropped, the command goes on.
    ///
    /// # Errors
    /// Those of [`EngineError`]; [`EngineError::Lost`] means that the command may have had its effect.
    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError>;
}

/// What a machine does for the volume groups on it.
#[async_trait::async_trait]
pub trait Backend: Send + Sync {
    /// Looks at every device of the machine with a process of its own: nothing that was seen before
    /// is believed. One row per physical volume, missing ones included.
    ///
    /// # Errors
    /// The look failed; nothing is known then.
    async fn look(&self) -> Result<Vec<PvRow>, EngineError>;

    /// The name by which LVM knows this machine (`lvm systemid`), if it has one. Groups that belong to
    /// another are left alone.
    fn system_id(&self) -> Option<&str>;

    /// An engine for the group `vg` that lies on `devices` and sees only those.
    fn open(&self, vg: &VgName, devices: &[PathBuf]) -> Arc<dyn Engine>;

    /// Reads the header of every metadata area on `devices`, past every cache.
    ///
    /// # Errors
    /// A device cannot be read, or holds no LVM label any more.
    async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError>;

    /// Makes the metadata on `devices` survive a power cut. LVM itself does not.
    ///
    /// # Errors
    /// A device did not take the flush: what was committed may be lost.
    async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError>;

    /// Writes the group's metadata into the host's backup directory, as `vgcfgbackup` does.
    ///
    /// # Errors
    /// It could not be written.
    async fn back_up(&self, vg: &VgName, devices: &[PathBuf]) -> Result<(), EngineError>;
}

/// The headers of a group's metadata areas at one moment. Every commit by anybody changes them, so a
/// view that was read after one fingerprint holds for as long as the fingerprint stays equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(pub(crate) Vec<u8>);

/// A command that has no reply.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It was not sent, since LVM's shell could not have read it.
    #[error("this command cannot be given to LVM: {0}")]
    Unspeakable(String),
    /// LVM ended before it answered: whether the command had its effect must be looked up.
    #[error("lvm ended in the middle of {command}: {reason}")]
    Lost {
        /// The command.
        command: String,
        /// What is known of the end.
        reason: String,
    },
    /// LVM answered, and the answer makes no sense.
    #[error("lvm's answer to {command} cannot be read: {reason}")]
    Unreadable {
        /// The command.
        command: String,
        /// What is wrong with it.
        reason: String,
    },
    /// LVM did not start.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A disk could not be read or flushed, or a file of the driver's own not be written.
    #[error("{}: {what}", .device.display())]
    Disk {
        /// The device.
        device: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
}

impl EngineError {
    /// The same with LVM's own words in it changed.
    pub(super) fn reworded(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Lost { command, reason } => Self::Lost { command, reason: change(&reason) },
            Self::Unreadable { command, reason } => Self::Unreadable { command, reason: change(&reason) },
            other => other,
        }
    }

    /// A disk that did not do what it should.
    pub(crate) fn disk(device: &Path, what: &'static str, source: std::io::Error) -> Self {
        Self::Disk { device: device.to_owned(), what, source }
    }
}
