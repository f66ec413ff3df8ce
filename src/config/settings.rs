use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lvm::Selection;
use crate::telemetry::LogFormat;
use crate::types::{Bytes, ParseError};

/// The configuration file of Quarry, a CSI driver over LVM. Every setting is also a flag of the same
/// name, and a flag or its environment variable wins over the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "Quarry")]
pub struct Settings {
    /// The volume groups that volumes are cut from. Where two entries match one group, the first counts.
    /// At least one is needed, here or by flag.
    pub volume_groups: Option<Vec<GroupSettings>>,
    /// The name of this node: in Kubernetes the Node object's. By default the host's name.
    pub node_name: Option<String>,
    /// The unix socket on which the gRPC services are served. By default unix:///run/quarry/csi.sock.
    pub endpoint: Option<String>,
    /// Where GET /healthz is answered for probes: an address and a port, or off. By default off, and for a
    /// node port 9809 of every address.
    pub health_address: Option<String>,
    /// For a node: where its controllers are. NAME:PORT, of which every address is dialled, or ADDRESS:PORT
    /// with a comma between several. Needed, here or by flag.
    pub controller: Option<String>,
    /// For a node: the directory with ca.crt, the CA certificates of the controllers. By default
    /// /etc/quarry/ca.
    pub ca_directory: Option<PathBuf>,
    /// For a node: the file with the service account token that tells which node it is. By default
    /// /var/run/secrets/quarry/token.
    pub token_file: Option<PathBuf>,
    /// For a node: the kubelet's directory. By default /var/lib/kubelet.
    pub kubelet_directory: Option<PathBuf>,
    /// A directory for what need not outlive a reboot. By default /run/quarry.
    pub run_directory: Option<PathBuf>,
    /// A directory for backups of the groups' metadata. By default /var/lib/quarry/backup.
    pub backup_directory: Option<PathBuf>,
    /// The directory of LVM's lock files: the host's own, which is /run/lock/lvm by default.
    pub lvm_locking_directory: Option<PathBuf>,
    /// How long LVM may take for one change of a volume group: a whole number and s, m or h. A group with
    /// one that takes longer counts as stuck: until it ends nothing new is begun there. By default 30s.
    #[schemars(regex(pattern = "^[0-9]+[smh]$"))]
    pub lvm_patience: Option<String>,
    /// How long running work is waited for when the driver stops: a whole number and s, m or h. By
    /// default 5m. A supervisor that kills must wait longer than that.
    #[schemars(regex(pattern = "^[0-9]+[smh]$"))]
    pub grace_period: Option<String>,
    /// What is logged: error, warn, info, debug, trace or off, also for parts, as in
    /// info,quarry::lvm=debug. By default info.
    pub log: Option<String>,
    /// How log lines are written. By default as text.
    pub log_format: Option<LogFormat>,
    /// The number of threads that serve requests, from 1 to 64. By default 2.
    #[schemars(range(min = 1, max = 64))]
    pub runtime_threads: Option<usize>,
}

/// Volume groups to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(expecting = "an entry [[volume-groups]] with a name")]
#[schemars(rename = "VolumeGroup")]
pub struct GroupSettings {
    /// The name of a volume group, or a pattern in which * stands for any text.
    pub name: String,
    /// How much of the group the creation of volumes leaves free, as in 10GiB. Expansions may use it.
    /// By default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<String>,
}

impl Settings {
    /// These settings, and `other`'s for those that are missing here. A list is taken whole.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            volume_groups: self.volume_groups.or(other.volume_groups),
            node_name: self.node_name.or(other.node_name),
            endpoint: self.endpoint.or(other.endpoint),
            health_address: self.health_address.or(other.health_address),
            controller: self.controller.or(other.controller),
            ca_directory: self.ca_directory.or(other.ca_directory),
            token_file: self.token_file.or(other.token_file),
            kubelet_directory: self.kubelet_directory.or(other.kubelet_directory),
            run_directory: self.run_directory.or(other.run_directory),
            backup_directory: self.backup_directory.or(other.backup_directory),
            lvm_locking_directory: self.lvm_locking_directory.or(other.lvm_locking_directory),
            lvm_patience: self.lvm_patience.or(other.lvm_patience),
            grace_period: self.grace_period.or(other.grace_period),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
            runtime_threads: self.runtime_threads.or(other.runtime_threads),
        }
    }
}

impl GroupSettings {
    /// `NAME` or `NAME=RESERVE`, as on the command line. No volume group has `=` in its name.
    pub(super) fn from_flag(text: &str) -> Self {
        let (name, reserve) = text.split_once('=').map_or((text, None), |(name, size)| (name, Some(size)));
        Self { name: name.to_owned(), reserve: reserve.map(str::to_owned) }
    }

    /// What the entry means.
    pub(super) fn resolve(self) -> Result<Selection, ParseError> {
        let reserve = self.reserve.map(|text| reserve(&text)).transpose()?.unwrap_or_default();
        Ok(Selection { pattern: self.name.parse()?, reserve })
    }
}

/// A size with its unit: who writes 50 does not mean 50 bytes.
fn reserve(text: &str) -> Result<Bytes, ParseError> {
    let wrong = || ParseError::new("reserve", text, "must be a size with its unit, as in 10GiB, or 0");
    let size: Bytes = text.parse().map_err(|_| wrong())?;
    let has_unit = text.ends_with(|last: char| !last.is_ascii_digit());
    if has_unit || size == Bytes::ZERO { Ok(size) } else { Err(wrong()) }
}

/// The JSON schema of the configuration file, for editors and for checks before a roll-out.
pub fn schema() -> Schema {
    schema_of::<Settings>()
}

/// The JSON schema of a file with such settings.
pub fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::default().with_transform(RecursiveTransform(without_null));
    SchemaGenerator::new(settings).into_root_schema_for::<T>()
}

/// TOML has no null: a setting is there or it is not.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice != &serde_json::json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            only.into_iter().for_each(|(key, value)| drop(schema.insert(key, value)));
        }
    }
}
