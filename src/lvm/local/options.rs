use std::path::PathBuf;
use std::time::Duration;

use crate::types::Bytes;

/// How commands are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// In one lvm shell per group.
    #[default]
    Shell,
    /// Each in a process of its own: slower, with nothing that lasts.
    Process,
}

/// What can be set about LVM on this machine.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// How commands are run.
    pub kind: EngineKind,
    /// Where private configurations lie. Several drivers may share it.
    pub run_dir: PathBuf,
    /// LVM's lock directory, the host's: all that uses LVM on this machine must share it.
    pub locking_dir: PathBuf,
    /// Where backups of metadata are written, on the host.
    pub backup_dir: PathBuf,
    /// The directory of the host's own LVM configuration, which only tells the system id.
    pub host_config: PathBuf,
    /// The system id, where the host's configuration is not to be asked.
    pub system_id: Option<String>,
    /// How long a command that only looks may take before it is killed.
    pub query_limit: Duration,
    /// After so many commands a shell is replaced: it grows by a third of a KiB with each.
    pub commands_per_shell: u64,
    /// With so much memory of its own a shell is replaced.
    pub memory_per_shell: Bytes,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            kind: EngineKind::default(),
            run_dir: "/run/quarry/lvm".into(),
            locking_dir: "/run/lock/lvm".into(),
            backup_dir: "/var/lib/quarry/backup".into(),
            host_config: "/etc/lvm".into(),
            system_id: None,
            query_limit: Duration::from_secs(30),
            commands_per_shell: 10_000,
            memory_per_shell: Bytes::mib(48),
        }
    }
}
