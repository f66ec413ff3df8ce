use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use kube::ResourceExt as _;
use tokio::time::Instant;

use super::lease::{Leases, named, now, seconds, terms};
use super::record::{LinkRecord, Mark, mark};
use super::{Cluster, ClusterError};
use crate::types::ParseError;

/// The label of the leases in which replicas record their links; its value is `true`.
pub const REPLICA_LABEL: &str = "lvm.csi.quarry/replica";

/// The annotation that says which nodes have a link: a [`LinkRecord`].
const LINKS: &str = "lvm.csi.quarry/links";

/// How long a record counts that is not renewed.
const TERM: Duration = Duration::from_secs(30);

/// The longest time between two looks at the records for which "no link was seen" still means something.
const GAP: Duration = Duration::from_secs(30);

/// Nobody asks whether there was a link longer ago than this.
const LONG_AGO: Duration = Duration::from_secs(3600);

/// The name of a replica: its pod's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaName(String);

impl ReplicaName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn lease(&self) -> String {
        format!("{}.links", self.0)
    }
}

impl FromStr for ReplicaName {
    type Err = ParseError;

    /// A name as pods have it (RFC 1123), short enough for the lease's name that is made of it.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let edges = edge(text.bytes().next()) && edge(text.bytes().last());
        if edges && text.len() <= 240 && text.bytes().all(letter) {
            return Ok(Self(text.to_owned()));
        }
        Err(ParseError::new("name of a pod", text, "is no name that Kubernetes allows"))
    }
}

/// This replica's record of the nodes that it has links to, in a lease of its own.
pub struct Replica {
    leases: Leases,
    name: ReplicaName,
    /// The UID of this replica's pod, with which the record is to go.
    pod_uid: Option<String>,
    written: Option<Lease>,
}

impl Replica {
    /// The record of the replica of that name. Where its pod's UID is given, Kubernetes removes the record
    /// with the pod.
    pub fn new(cluster: &Cluster, name: ReplicaName, pod_uid: Option<String>) -> Self {
        Self { leases: Leases::new(cluster), name, pod_uid, written: None }
    }

    /// Writes down the nodes with a link, and that this is so now.
    ///
    /// # Errors
    /// It could not be written: others then take it that nothing changed, and after a while that there is no
    /// link at all.
    pub async fn record(&mut self, nodes: &BTreeSet<String>) -> Result<(), ClusterError> {
        let lease_name = self.name.lease();
        let found = match self.written.take() {
            Some(lease) => Some(lease),
            None => self.leases.get(&lease_name).await?,
        };
        let is_new = found.is_none();
        let mut lease = found.unwrap_or_else(|| self.blank(&lease_name));
        terms(&mut lease).renew_time = Some(now());
        let record = LinkRecord::of(nodes.iter().map(String::as_str));
        lease.annotations_mut().insert(LINKS.to_owned(), record.to_string());
        let written = if is_new {
            self.leases.create(&lease).await
        } else {
            self.leases.replace(&lease_name, &lease).await
        };
        self.written = Some(written?);
        Ok(())
    }

    fn blank(&self, lease_name: &str) -> Lease {
        let labels = BTreeMap::from([(REPLICA_LABEL.to_owned(), "true".to_owned())]);
        let mut lease = named(lease_name, labels);
        let terms = terms(&mut lease);
        terms.holder_identity = Some(self.name.0.clone());
        terms.lease_duration_seconds = Some(seconds(TERM));
        lease.metadata.owner_references = self.pod_uid.clone().map(|uid| {
            vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: self.name.0.clone(),
                uid,
                ..OwnerReference::default()
            }]
        });
        lease
    }

    /// Removes the record: this replica has no links any more.
    ///
    /// # Errors
    /// The API server did not do it; the record will be taken for stale.
    pub async fn retire(self) -> Result<(), ClusterError> {
        let uid = self.written.as_ref().and_then(Lease::uid);
        self.leases.delete(&self.name.lease(), uid).await
    }
}

/// What the records of all replicas tell, over time.
pub struct Replicas {
    leases: Leases,
    sightings: Sightings,
}

impl Replicas {
    /// Nothing is known yet.
    pub fn new(cluster: &Cluster) -> Self {
        Self { leases: Leases::new(cluster), sightings: Sightings::default() }
    }

    /// Looks at the records.
    ///
    /// # Errors
    /// They cannot be read. What was seen before goes stale after a while.
    pub async fn look(&mut self) -> Result<(), ClusterError> {
        let leases = self.leases.list(&format!("{REPLICA_LABEL}=true")).await?;
        self.sightings.take(leases, Instant::now());
        Ok(())
    }

    /// Whether it is certain that no replica has had a link to the node for that long. Nothing is
    /// certain before the records were looked at for that long without a gap.
    pub fn none_for(&self, node: &str, time: Duration) -> bool {
        self.sightings.none_for(node, time, Instant::now())
    }
}

/// What was seen of one record.
struct Record {
    renewed: Option<MicroTime>,
    at: Instant,
}

#[derive(Default)]
struct Sightings {
    /// Since when the records have been looked at without a gap, and when last.
    watched: Option<(Instant, Instant)>,
    records: HashMap<String, Record>,
    /// When a node was last seen in a record that counted.
    linked: HashMap<Mark, Instant>,
}

impl Sightings {
    fn take(&mut self, leases: Vec<Lease>, now: Instant) {
        let mut since = self.watched.filter(|(_, last)| now - *last <= GAP).map_or(now, |(since, _)| since);
        let mut records = HashMap::new();
        for mut lease in leases {
            let name = lease.name_any();
            let renewed = terms(&mut lease).renew_time.clone();
            let at = match self.records.remove(&name) {
                Some(record) if record.renewed == renewed => record.at,
                _ => now,
            };
            if now - at < TERM {
                match links(&lease) {
                    Some(record) => self.linked.extend(record.marks().map(|mark| (mark, now))),
                    // Another release wrote it: it may mean a link to any node.
                    None => since = now,
                }
            }
            records.insert(name, Record { renewed, at });
        }
        self.records = records;
        self.watched = Some((since, now));
        // What lies before the present watch, or very long ago, makes no difference any more.
        self.linked.retain(|_, seen| *seen >= since && now - *seen < LONG_AGO);
    }

    fn none_for(&self, node: &str, time: Duration, now: Instant) -> bool {
        let Some((since, last)) = self.watched.filter(|(_, last)| now - *last <= GAP) else { return false };
        let seen = self.linked.get(&mark(node)).copied().unwrap_or(since);
        last - seen >= time
    }
}

/// The record in a lease; `None` where it makes no sense.
fn links(lease: &Lease) -> Option<LinkRecord> {
    lease.annotations().get(LINKS)?.parse().ok()
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
