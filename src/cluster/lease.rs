use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};

use super::api::ask;
use super::{Cluster, ClusterError};

/// The leases of the driver's namespace.
#[derive(Clone)]
pub(super) struct Leases(Api<Lease>);

impl Leases {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self(Api::namespaced(cluster.client.clone(), &cluster.namespace))
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<Lease>, ClusterError> {
        ask("read a lease", self.0.get_opt(name)).await
    }

    pub(super) async fn create(&self, lease: &Lease) -> Result<Lease, ClusterError> {
        ask("make a lease", self.0.create(&PostParams::default(), lease)).await
    }

    /// Fails with a conflict where the lease is not any more as it was read.
    pub(super) async fn replace(&self, name: &str, lease: &Lease) -> Result<Lease, ClusterError> {
        ask("renew a lease", self.0.replace(name, &PostParams::default(), lease)).await
    }

    /// Removes the lease with that UID; one of another UID is somebody else's.
    pub(super) async fn delete(&self, name: &str, uid: Option<String>) -> Result<(), ClusterError> {
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        match ask("remove a lease", self.0.delete(name, &parameters)).await {
            Err(error) if error.is_absent() || error.is_conflict() => Ok(()),
            result => result.map(drop),
        }
    }

    pub(super) async fn list(&self, label: &str) -> Result<Vec<Lease>, ClusterError> {
        let parameters = ListParams::default().labels(label);
        Ok(ask("list the leases of the controllers", self.0.list(&parameters)).await?.items)
    }
}

pub(super) fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}

/// A lease's time in whole seconds, as the object holds it.
pub(super) fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

/// The lease's terms, an empty lease's where it has none.
pub(super) fn terms(lease: &mut Lease) -> &mut LeaseSpec {
    lease.spec.get_or_insert_default()
}

pub(super) fn named(name: &str, labels: BTreeMap<String, String>) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    lease.metadata.labels = (!labels.is_empty()).then_some(labels);
    lease
}
