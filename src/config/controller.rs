//! The configuration of the controller role.

mod flags;
mod lost;
mod settings;

pub use flags::ControllerFlags;
pub use lost::{LostChange, LostConfig, LostFlags};
pub use settings::ControllerSettings;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{ConfigError, file, setting, span, threads};
use crate::cluster::ReplicaName;
use crate::cluster::authority::Names;
use crate::server::Endpoint;
use crate::telemetry::{LogFilter, LogFormat};
use crate::types::ParseError;

/// What the controller is to do, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Where the gRPC services are served to the sidecars.
    pub endpoint: Endpoint,
    /// Where nodes connect to.
    pub link_address: SocketAddr,
    /// Where probes ask.
    pub health_address: SocketAddr,
    /// The namespace that the driver is installed in.
    pub namespace: String,
    /// The service account of the nodes.
    pub node_service_account: String,
    /// The name of this replica.
    pub pod_name: ReplicaName,
    /// The UID of this replica's pod.
    pub pod_uid: Option<String>,
    /// The objects that hold the link's authority.
    pub authority: Names,
    /// The ConfigMap with the groups that are declared lost.
    pub lost_config_map: String,
    /// Whether orphaned volumes are removed.
    pub collect_orphans: bool,
    /// How long running calls are waited for at the end.
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
    pub(crate) const LINK_ADDRESS: &str = "[::]:9443";
    pub(crate) const HEALTH_ADDRESS: &str = "[::]:9808";
    pub(crate) const NODE_SERVICE_ACCOUNT: &str = "quarry-node";
    pub(crate) const CA_SECRET: &str = "quarry-ca";
    pub(crate) const CA_CONFIG_MAP: &str = "quarry-ca";
    pub(crate) const LOST_CONFIG_MAP: &str = "quarry-lost";
    pub(crate) const GRACE_PERIOD: &str = "2m";
}

impl ControllerConfig {
    /// Reads the file that the flags name, and puts both together. Blocks: it is for the start.
    ///
    /// # Errors
    /// See [`ConfigError`]; all of them are the user's to mend.
    pub fn load(flags: ControllerFlags) -> Result<Self, ConfigError> {
        let (path, typed) = flags.into_settings();
        let file = path.as_deref().map(file::read).transpose()?.unwrap_or_default();
        Self::resolve(typed.or(file))
    }

    /// What the settings mean.
    ///
    /// # Errors
    /// A value that its setting cannot have, or one that is missing.
    pub fn resolve(settings: ControllerSettings) -> Result<Self, ConfigError> {
        let text = |typed: Option<String>, default: &str| typed.unwrap_or_else(|| default.to_owned());
        let object = |name, typed, default| setting(name, object_name(text(typed, default)));
        Ok(Self {
            endpoint: setting("endpoint", text(settings.endpoint, super::default::ENDPOINT).parse())?,
            link_address: address("link-address", settings.link_address, default::LINK_ADDRESS)?,
            health_address: address("health-address", settings.health_address, default::HEALTH_ADDRESS)?,
            namespace: setting("namespace", object_name(needed("namespace", settings.namespace)?))?,
            node_service_account: object(
                "node-service-account",
                settings.node_service_account,
                default::NODE_SERVICE_ACCOUNT,
            )?,
            pod_name: setting("pod-name", needed("pod-name", settings.pod_name)?.parse())?,
            pod_uid: settings.pod_uid.filter(|uid| !uid.is_empty()),
            authority: Names {
                secret: object("ca-secret", settings.ca_secret, default::CA_SECRET)?,
                config_map: object("ca-config-map", settings.ca_config_map, default::CA_CONFIG_MAP)?,
            },
            lost_config_map: object("lost-config-map", settings.lost_config_map, default::LOST_CONFIG_MAP)?,
            collect_orphans: settings.collect_orphans.unwrap_or_default(),
            grace_period: setting(
                "grace-period",
                span::parse(&text(settings.grace_period, default::GRACE_PERIOD)),
            )?,
            log_filter: setting("log", text(settings.log, super::default::LOG).parse())?,
            log_format: settings.log_format.unwrap_or_default(),
            runtime_threads: setting("runtime-threads", threads(settings.runtime_threads))?,
        })
    }
}

fn address(name: &'static str, typed: Option<String>, default: &str) -> Result<SocketAddr, ConfigError> {
    let text = typed.unwrap_or_else(|| default.to_owned());
    let wrong =
        |_| ParseError::new("address", &text, "must be ADDRESS:PORT, as in 0.0.0.0:9443 or [::]:9443");
    setting(name, text.parse().map_err(wrong))
}

fn needed(setting: &'static str, typed: Option<String>) -> Result<String, ConfigError> {
    typed.filter(|text| !text.is_empty()).ok_or(ConfigError::Missing { setting })
}

/// A name as Kubernetes gives its objects.
fn object_name(text: String) -> Result<String, ParseError> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    if text.is_empty() || text.len() > 253 || !text.bytes().all(letter) {
        return Err(ParseError::new("name", &text, "is none that Kubernetes allows"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
