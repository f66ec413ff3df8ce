use std::path::PathBuf;

use clap::Args;

use super::{ControllerSettings, default};
use crate::config::flags::with_default;
use crate::telemetry::LogFormat;

/// The controller's settings as flags. Each has an environment variable; a flag wins over it, and both win
/// over the file.
#[derive(Debug, Clone, Default, Args)]
pub struct ControllerFlags {
    /// A TOML file with these settings; `quarry config-schema controller` describes it.
    #[arg(long, value_name = "FILE", env = "QUARRY_CONFIG")]
    config: Option<PathBuf>,

    #[arg(long, value_name = "unix:///PATH", env = "CSI_ENDPOINT", help = with_default("The unix socket to serve the sidecars on.", crate::config::default::ENDPOINT))]
    endpoint: Option<String>,

    #[arg(long, value_name = "ADDRESS:PORT", env = "QUARRY_LINK_ADDRESS", help = with_default("Where nodes connect to.", default::LINK_ADDRESS))]
    link_address: Option<String>,

    #[arg(long, value_name = "ADDRESS:PORT", env = "QUARRY_HEALTH_ADDRESS", help = with_default("Where GET /healthz says whether the controller is ready.", default::HEALTH_ADDRESS))]
    health_address: Option<String>,

    /// The namespace that the driver is installed in.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    namespace: Option<String>,

    #[arg(long, value_name = "NAME", env = "QUARRY_NODE_SERVICE_ACCOUNT", help = with_default("The service account of the nodes: only its tokens open a link.", default::NODE_SERVICE_ACCOUNT))]
    node_service_account: Option<String>,

    /// The name of this replica's pod.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pod_name: Option<String>,

    /// The UID of this replica's pod: with it, what the replica records of itself goes with the pod.
    #[arg(long, value_name = "UID", env = "POD_UID")]
    pod_uid: Option<String>,

    #[arg(long, value_name = "NAME", env = "QUARRY_CA_SECRET", help = with_default("The Secret for the keys of the link's authority; it must exist, and may be empty.", default::CA_SECRET))]
    ca_secret: Option<String>,

    #[arg(long, value_name = "NAME", env = "QUARRY_CA_CONFIG_MAP", help = with_default("The ConfigMap for the certificates of the link's authority; it must exist, and may be empty.", default::CA_CONFIG_MAP))]
    ca_config_map: Option<String>,

    #[arg(long, value_name = "NAME", env = "QUARRY_LOST_CONFIG_MAP", help = with_default("The ConfigMap with the volume groups that are declared lost, which quarry lost edits.", default::LOST_CONFIG_MAP))]
    lost_config_map: Option<String>,

    /// Removes volumes that were never used and whose claims are gone. Without it they are only told of.
    #[arg(
        long,
        value_name = "true|false",
        env = "QUARRY_COLLECT_ORPHANS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    collect_orphans: Option<bool>,

    #[arg(long, value_name = "TIME", env = "QUARRY_GRACE_PERIOD", help = with_default("How long running calls are waited for at the end, as in 90s or 5m.", default::GRACE_PERIOD))]
    grace_period: Option<String>,

    #[arg(long, value_name = "LEVEL", env = "QUARRY_LOG", help = with_default("What to log: error, warn, info, debug, trace or off, also for parts, as in info,quarry::link=debug.", crate::config::default::LOG))]
    log: Option<String>,

    /// How to write log lines: text or json. [default: text]
    #[arg(long, value_name = "FORMAT", env = "QUARRY_LOG_FORMAT")]
    log_format: Option<LogFormat>,

    #[arg(long, value_name = "NUMBER", env = "QUARRY_RUNTIME_THREADS", help = with_default("How many threads serve requests.", &crate::config::default::RUNTIME_THREADS.to_string()))]
    runtime_threads: Option<usize>,
}

impl ControllerFlags {
    /// The file to read, and the settings that were given beside it.
    pub(super) fn into_settings(self) -> (Option<PathBuf>, ControllerSettings) {
        let settings = ControllerSettings {
            endpoint: self.endpoint,
            link_address: self.link_address,
            health_address: self.health_address,
            namespace: self.namespace,
            node_service_account: self.node_service_account,
            pod_name: self.pod_name,
            pod_uid: self.pod_uid,
            ca_secret: self.ca_secret,
            ca_config_map: self.ca_config_map,
            lost_config_map: self.lost_config_map,
            collect_orphans: self.collect_orphans,
            grace_period: self.grace_period,
            log: self.log,
            log_format: self.log_format,
            runtime_threads: self.runtime_threads,
        };
        (self.config, settings)
    }
}
