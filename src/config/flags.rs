use std::path::PathBuf;

use clap::Args;

use super::{GroupSettings, Settings, default};
use crate::telemetry::LogFormat;

/// The settings as flags. Each has an environment variable; a flag wins over it, and both win over
/// the file.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    /// A volume group to cut volumes from; may be given several times.
    ///
    /// NAME may hold * for any text. With =RESERVE, creating volumes leaves that much of each such group
    /// free, and expanding volumes may use it: --volume-group vg0=10GiB. Where two of them match one
    /// group, the first counts. Replaces the list in the file.
    #[arg(
        long = "volume-group",
        value_name = "NAME[=RESERVE]",
        env = "QUARRY_VOLUME_GROUPS",
        value_delimiter = ','
    )]
    volume_groups: Option<Vec<String>>,

    /// A TOML file with these settings; `quarry config-schema` describes it.
    #[arg(long, value_name = "FILE", env = "QUARRY_CONFIG")]
    config: Option<PathBuf>,

    /// The name of this node; in Kubernetes that of its Node object. [default: the host's name]
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node_name: Option<String>,

    #[arg(long, value_name = "unix:///PATH", env = "CSI_ENDPOINT", help = with_default("The unix socket to serve on.", default::ENDPOINT))]
    endpoint: Option<String>,

    /// Where GET /healthz is answered, or off. [default: off; for a node [::]:9809]
    #[arg(long, value_name = "ADDRESS:PORT", env = "QUARRY_HEALTH_ADDRESS")]
    health_address: Option<String>,

    #[arg(long, value_name = "DIR", env = "QUARRY_RUN_DIRECTORY", help = with_default("For what need not outlive a reboot.", default::RUN_DIRECTORY))]
    run_directory: Option<PathBuf>,

    #[arg(long, value_name = "DIR", env = "QUARRY_BACKUP_DIRECTORY", help = with_default("For backups of the volume groups' metadata.", default::BACKUP_DIRECTORY))]
    backup_directory: Option<PathBuf>,

    #[arg(long, value_name = "DIR", env = "QUARRY_LVM_LOCKING_DIRECTORY", help = with_default("Where the host's LVM keeps its locks.", default::LVM_LOCKING_DIRECTORY))]
    lvm_locking_directory: Option<PathBuf>,

    #[arg(long, value_name = "TIME", env = "QUARRY_LVM_PATIENCE", help = with_default("How long LVM may take for one change before its volume group counts as stuck, as in 90s or 5m.", default::LVM_PATIENCE))]
    lvm_patience: Option<String>,

    #[arg(long, value_name = "TIME", env = "QUARRY_GRACE_PERIOD", help = with_default("How long running work is waited for at the end, as in 90s or 5m.", default::GRACE_PERIOD))]
    grace_period: Option<String>,

    #[arg(long, value_name = "LEVEL", env = "QUARRY_LOG", help = with_default("What to log: error, warn, info, debug, trace or off, also for parts, as in info,quarry::lvm=debug.", default::LOG))]
    log: Option<String>,

    /// How to write log lines: text or json. [default: text]
    #[arg(long, value_name = "FORMAT", env = "QUARRY_LOG_FORMAT")]
    log_format: Option<LogFormat>,

    #[arg(long, value_name = "NUMBER", env = "QUARRY_RUNTIME_THREADS", help = with_default("How many threads serve requests.", &default::RUNTIME_THREADS.to_string()))]
    runtime_threads: Option<usize>,
}

/// Clap's own defaults would hide whether a flag was given, and with it whether the file counts.
pub(super) fn with_default(help: &str, default: &str) -> String {
    format!("{help} [default: {default}]")
}

impl Flags {
    /// The file to read, and the settings that were given beside it.
    pub(super) fn into_settings(self) -> (Option<PathBuf>, Settings) {
        let groups = |names: Vec<String>| names.iter().map(|name| GroupSettings::from_flag(name)).collect();
        let settings = Settings {
            volume_groups: self.volume_groups.map(groups),
            node_name: self.node_name,
            endpoint: self.endpoint,
            health_address: self.health_address,
            run_directory: self.run_directory,
            backup_directory: self.backup_directory,
            lvm_locking_directory: self.lvm_locking_directory,
            lvm_patience: self.lvm_patience,
            grace_period: self.grace_period,
            log: self.log,
            log_format: self.log_format,
            runtime_threads: self.runtime_threads,
            ..Settings::default()
        };
        (self.config, settings)
    }
}
