use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::telemetry::LogFormat;

/// The configuration file of Quarry's controller. Every setting is also a flag of the same name, and a flag
/// or its environment variable wins over the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "Quarry controller")]
pub struct ControllerSettings {
    /// The unix socket on which the gRPC services are served to the sidecars. By default
    /// unix:///run/quarry/csi.sock.
    pub endpoint: Option<String>,
    /// The address and port that nodes connect to. By default port 9443 of every address.
    pub link_address: Option<String>,
    /// The address and port on which GET /healthz says whether the controller is ready. By default port 9808 of every
    /// address.
    pub health_address: Option<String>,
    /// The namespace that the driver is installed in. It has no default.
    pub namespace: Option<String>,
    /// The service account of the nodes, in that namespace. By default quarry-node.
    pub node_service_account: Option<String>,
    /// The name of this replica's pod. It has no default.
    pub pod_name: Option<String>,
    /// The UID of this replica's pod: with it, what the replica records of itself goes with the pod.
    pub pod_uid: Option<String>,
    /// The Secret that holds the keys of the link's authority: it exists, and may be empty. By default
    /// quarry-ca.
    pub ca_secret: Option<String>,
    /// The ConfigMap that holds the certificates of the link's authority, and is mounted into every node's
    /// pod: it exists, and may be empty. By default quarry-ca.
    pub ca_config_map: Option<String>,
    /// The ConfigMap with the volume groups that are declared lost, which `quarry lost` edits. By default
    /// quarry-lost.
    pub lost_config_map: Option<String>,
    /// Whether volumes are removed that were never used and whose claims are gone. By default they are only
    /// told of.
    pub collect_orphans: Option<bool>,
    /// How long running calls are waited for when the controller stops: a whole number and s, m or h. By
    /// default 2m.
    #[schemars(regex(pattern = "^[0-9]+[smh]$"))]
    pub grace_period: Option<String>,
    /// What is logged: error, warn, info, debug, trace or off, also for parts, as in
    /// info,quarry::link=debug. By default info.
    pub log: Option<String>,
    /// How log lines are written. By default as text.
    pub log_format: Option<LogFormat>,
    /// The number of threads that serve requests, from 1 to 64. By default 2.
    #[schemars(range(min = 1, max = 64))]
    pub runtime_threads: Option<usize>,
}

impl ControllerSettings {
    /// These settings, and `other`'s for those that are missing here. A list is taken whole.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            endpoint: self.endpoint.or(other.endpoint),
            link_address: self.link_address.or(other.link_address),
            health_address: self.health_address.or(other.health_address),
            namespace: self.namespace.or(other.namespace),
            node_service_account: self.node_service_account.or(other.node_service_account),
            pod_name: self.pod_name.or(other.pod_name),
            pod_uid: self.pod_uid.or(other.pod_uid),
            ca_secret: self.ca_secret.or(other.ca_secret),
            ca_config_map: self.ca_config_map.or(other.ca_config_map),
            lost_config_map: self.lost_config_map.or(other.lost_config_map),
            collect_orphans: self.collect_orphans.or(other.collect_orphans),
            grace_period: self.grace_period.or(other.grace_period),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
            runtime_threads: self.runtime_threads.or(other.runtime_threads),
        }
    }
}
