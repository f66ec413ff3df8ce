//! The configuration, in two steps: [`Settings`] is what was typed, [`Config`] is what it means.
//!
//! What was typed comes from flags, environment variables and a TOML file; the earlier in that list
//! wins, setting by setting. Everything is checked before anything is started, so that a mistake is a
//! message and not half a driver.

mod controller;
mod file;
mod flags;
mod health;
mod look;
mod node;
mod settings;
mod span;

pub use controller::{
    ControllerConfig, ControllerFlags, ControllerSettings, LostChange, LostConfig, LostFlags,
};
pub use file::FileError;
pub use flags::Flags;
pub use look::{LookConfig, LookFlags, ManifestsConfig, Policy, VolumesFlags};
pub use node::{NodeConfig, NodeFlags};
pub use settings::{GroupSettings, Settings, schema, schema_of};

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lvm::Selection;
use crate::server::Endpoint;
use crate::telemetry::{LogFilter, LogFormat};
use crate::types::{NodeName, ParseError};

/// What the driver is to do, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The volume groups to use, and what stays free in them. Where several match a group, the first does.
    pub volume_groups: Vec<Selection>,
    /// The name of this node, as a label's value.
    pub node_name: NodeName,
    /// Where the gRPC services are served.
    pub endpoint: Endpoint,
    /// Where probes are answered over HTTP; `None` where they are not.
    pub health_address: Option<SocketAddr>,
    /// For what need not outlive a reboot: locks, LVM's settings.
    pub run_directory: PathBuf,
    /// For backups of the groups' metadata.
    pub backup_directory: PathBuf,
    /// Where LVM's own locks are: the host's directory, or other users of LVM are not kept apart.
    pub lvm_locking_directory: PathBuf,
    /// How long LVM may take for one change before its group counts as stuck.
    pub lvm_patience: Duration,
    /// How long running work is waited for at the end.
    pub grace_period: Duration,
    /// What is logged.
    pub log_filter: LogFilter,
    /// How it is written.
    pub log_format: LogFormat,
    /// The number of threads that serve.
    pub runtime_threads: NonZeroUsize,
}

/// The default of every setting that has one, as it would be typed.
pub(crate) mod default {
    pub(crate) const ENDPOINT: &str = "unix:///run/quarry/csi.sock";
    pub(crate) const HEALTH_ADDRESS: &str = "off";
    pub(crate) const NODE_HEALTH_ADDRESS: &str = "[::]:9809";
    pub(crate) const RUN_DIRECTORY: &str = "/run/quarry";
    pub(crate) const BACKUP_DIRECTORY: &str = "/var/lib/quarry/backup";
    pub(crate) const LVM_LOCKING_DIRECTORY: &str = "/run/lock/lvm";
    pub(crate) const LVM_PATIENCE: &str = "30s";
    pub(crate) const CA_DIRECTORY: &str = "/etc/quarry/ca";
    pub(crate) const TOKEN_FILE: &str = "/var/run/secrets/quarry/token";
    pub(crate) const KUBELET_DIRECTORY: &str = "/var/lib/kubelet";
    pub(crate) const GRACE_PERIOD: &str = "5m";
    pub(crate) const LOG: &str = "info";
    pub(crate) const RUNTIME_THREADS: usize = 2;
}

/// The most threads that anybody could want; LVM is the bottleneck, not the driver.
const MOST_THREADS: usize = 64;

/// A configuration that means nothing.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A setting has a value that it cannot have.
    #[error("the setting {setting} is wrong")]
    Setting {
        /// Its name in the file; the flag is the same with two hyphens.
        setting: &'static str,
        /// What is wrong.
        #[source]
        source: ParseError,
    },
    /// A setting that has no default is missing.
    #[error("the setting {setting} is missing: give --{setting}, or set it in the file of --config")]
    Missing {
        /// Its name in the file; the flag is the same with two hyphens.
        setting: &'static str,
    },
    /// Nothing to work with.
    #[error(
        "no volume group is named: give --volume-group NAME, or a [[volume-groups]] entry in the file of --config"
    )]
    NoVolumeGroup,
    /// Nobody to be linked to.
    #[error("no controller is named: give --controller NAME:PORT, or controller in the file of --config")]
    NoController,
}

impl Config {
    /// Reads the file that the flags name, and puts both together. Blocks: it is for the start.
    ///
    /// # Errors
    /// See [`ConfigError`]; all of them are the user's to mend.
    pub fn load(flags: Flags) -> Result<Self, ConfigError> {
        let (path, typed) = flags.into_settings();
        Self::resolve(with_file(path, typed)?, &hostname())
    }

    /// What the settings mean; `hostname` is the node's name where none is set.
    ///
    /// # Errors
    /// A value that its setting cannot have, or no volume group.
    pub fn resolve(settings: Settings, hostname: &str) -> Result<Self, ConfigError> {
        let groups = settings.volume_groups.unwrap_or_default();
        let volume_groups = selections(groups)?;
        if volume_groups.is_empty() {
            return Err(ConfigError::NoVolumeGroup);
        }
        let text = |typed: Option<String>, default: &str| typed.unwrap_or_else(|| default.to_owned());
        let endpoint = text(settings.endpoint, default::ENDPOINT);
        let lvm_patience = text(settings.lvm_patience, default::LVM_PATIENCE);
        let grace_period = text(settings.grace_period, default::GRACE_PERIOD);
        let log = text(settings.log, default::LOG);
        let health_address = text(settings.health_address, default::HEALTH_ADDRESS);
        Ok(Self {
            volume_groups,
            node_name: setting("node-name", text(settings.node_name, hostname).parse())?,
            endpoint: setting("endpoint", endpoint.parse())?,
            health_address: setting("health-address", health::parse(&health_address))?,
            run_directory: directory("run-directory", settings.run_directory, default::RUN_DIRECTORY)?,
            backup_directory: directory(
                "backup-directory",
                settings.backup_directory,
                default::BACKUP_DIRECTORY,
            )?,
            lvm_locking_directory: directory(
                "lvm-locking-directory",
                settings.lvm_locking_directory,
                default::LVM_LOCKING_DIRECTORY,
            )?,
            lvm_patience: setting(
                "lvm-patience",
                span::parse(&lvm_patience).and_then(|span| some(span, &lvm_patience)),
            )?,
            grace_period: setting("grace-period", span::parse(&grace_period))?,
            log_filter: setting("log", log.parse())?,
            log_format: settings.log_format.unwrap_or_default(),
            runtime_threads: setting("runtime-threads", threads(settings.runtime_threads))?,
        })
    }
}

/// What groups are meant.
fn selections(groups: Vec<GroupSettings>) -> Result<Vec<Selection>, ConfigError> {
    groups.into_iter().map(|group| setting("volume-groups", group.resolve())).collect()
}

/// What was typed, and the file's for what was not.
fn with_file(path: Option<PathBuf>, typed: Settings) -> Result<Settings, ConfigError> {
    Ok(typed.or(path.as_deref().map(file::read).transpose()?.unwrap_or_default()))
}

fn setting<T>(setting: &'static str, result: Result<T, ParseError>) -> Result<T, ConfigError> {
    result.map_err(|source| ConfigError::Setting { setting, source })
}

/// Without any patience every group would be stuck at once.
fn some(span: Duration, text: &str) -> Result<Duration, ParseError> {
    if span > Duration::ZERO { Ok(span) } else { Err(ParseError::new("time", text, "must not be zero")) }
}

fn directory(name: &'static str, typed: Option<PathBuf>, default: &str) -> Result<PathBuf, ConfigError> {
    let path = typed.unwrap_or_else(|| PathBuf::from(default));
    setting(name, absolute(&path).map(|()| path))
}

fn absolute(path: &Path) -> Result<(), ParseError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(ParseError::new("path", &path.to_string_lossy(), "must be an absolute path"))
}

fn threads(typed: Option<usize>) -> Result<NonZeroUsize, ParseError> {
    let number = typed.unwrap_or(default::RUNTIME_THREADS);
    NonZeroUsize::new(number)
        .filter(|threads| threads.get() <= MOST_THREADS)
        .ok_or_else(|| ParseError::new("number", &number.to_string(), "must be from 1 to 64"))
}

/// The machine's name; without one there is no default, and the setting is asked for.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
