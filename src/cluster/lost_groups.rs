use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::api::ask;
use super::{Cluster, ClusterError};
use crate::types::VgUuid;

/// The volume groups that an administrator has declared lost: a ConfigMap with an entry for each. Its key is the
/// group's UUID, its value a note for people. The chart makes it, without any data, so that no upgrade takes some
/// away.
#[derive(Clone)]
pub struct LostGroups {
    maps: Api<ConfigMap>,
    name: String,
}

impl LostGroups {
    /// Those in the ConfigMap of that name, in the driver's namespace.
    pub fn new(cluster: &Cluster, name: impl Into<String>) -> Self {
        Self { maps: Api::namespaced(cluster.client.clone(), &cluster.namespace), name: name.into() }
    }

    /// The groups, and what is noted of each. None where there is no such ConfigMap. What is not a group's UUID
    /// stands for none.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn read(&self) -> Result<BTreeMap<VgUuid, String>, ClusterError> {
        let map = ask("read the list of lost volume groups", self.maps.get_opt(&self.name)).await?;
        let entries = map.and_then(|map| map.data).unwrap_or_default().into_iter();
        let group = |(key, note): (String, String)| match key.parse() {
            Ok(vg) => Some((vg, note)),
            Err(_) => {
                tracing::warn!(key, "the list of lost volume groups holds what is no group's UUID");
                None
            }
        };
        Ok(entries.filter_map(group).collect())
    }

    /// Puts a group on the list.
    ///
    /// # Errors
    /// The API server did not do it.
    pub async fn declare(&self, vg: &VgUuid) -> Result<(), ClusterError> {
        let note = format!("declared {}", Timestamp::now().strftime("%FT%TZ"));
        self.patch("put a volume group on the list of lost ones", vg, json!(note)).await
    }

    /// Takes a group off the list, if it is on it.
    ///
    /// # Errors
    /// The API server did not do it.
    pub async fn withdraw(&self, vg: &VgUuid) -> Result<(), ClusterError> {
        self.patch("take a volume group off the list of lost ones", vg, Value::Null).await
    }

    /// A merge patch names one entry and leaves all others as they are (RFC 7386).
    async fn patch(&self, what: &'static str, vg: &VgUuid, note: Value) -> Result<(), ClusterError> {
        let patch = Patch::Merge(json!({ "data": { vg.to_string(): note } }));
        ask(what, self.maps.patch(&self.name, &PatchParams::default(), &patch)).await.map(drop)
    }
}

impl fmt::Debug for LostGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LostGroups").field("name", &self.name).finish_non_exhaustive()
    }
}
