use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use uuid::Uuid;

use super::Fleet;
use super::contest::uncontested;
use super::fleet::Linked;
use crate::cluster::{Cluster, ClusterError, Events, Leadership, Nodes, Notice, Subject, VolumeHandles};
use crate::csi::DRIVER_NAME;
use crate::link::Session;
use crate::proto::quarry::v1::stock_client::StockClient;
use crate::proto::quarry::v1::{ListUnusedRequest, RemoveUnusedRequest, UnusedVolume};
use crate::types::{ClusterId, VolumeId, chain};

/// How long a node may take to list or remove volumes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks for volumes that nobody will ever use, as the leader: those that a create made whose caller gave
/// up while their node was away. One is an orphan if it was never staged, is older than [`Pace::orphan_age`](super::Pace), no
/// PersistentVolume has its handle, and its claim is gone or bound to another volume; and if that was so in
/// two rounds in a row, since what is read of the API server is not read at one moment. A group that another node
/// may have too is left out: what is unused in a copy may be in use there.
///
/// Orphans are told of, and removed only where that is asked for.
pub struct Orphans {
    /// The nodes with links.
    pub fleet: Arc<Fleet>,
    /// The cluster whose claims count.
    pub cluster: Cluster,
    /// Its nodes.
    pub nodes: Nodes,
    /// Whether this replica is the leader.
    pub leadership: Leadership,
    /// Where people are told.
    pub events: Events,
    /// Whether orphans are removed.
    pub collect: bool,
}

/// An orphan, and why it is one.
struct Orphan {
    session: Session,
    volume: UnusedVolume,
    why: String,
}

/// A judgement that could not be made.
#[derive(Debug, thiserror::Error)]
enum Unjudged {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the cluster's UID is none: {0}")]
    Identity(#[from] crate::types::ParseError),
}

impl Orphans {
    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let mut suspects = HashSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(self.fleet.pace().orphans) => {}
            }
            if !self.leadership.holds() {
                suspects.clear();
                self.fleet.found_orphans(0);
                continue;
            }
            let round = stop.run_until_cancelled(self.round(&suspects)).await;
            match round {
                None => return,
                Some(Ok(found)) => suspects = found,
                Some(Err(error)) => {
                    tracing::warn!(error = chain(&error), "orphaned volumes cannot be looked for")
                }
            }
        }
    }

    /// Judges once. Gives the identities of all that look like orphans; `suspects` are those of the last round.
    async fn round(&self, suspects: &HashSet<String>) -> Result<HashSet<String>, Unjudged> {
        let unused = self.unused().await;
        if unused.is_empty() {
            self.fleet.found_orphans(0);
            return Ok(HashSet::new());
        }
        let here: ClusterId = self.cluster.identity().await?.parse()?;
        let handles = self.cluster.volume_handles(DRIVER_NAME).await?;
        let (mut found, mut orphans) = (HashSet::new(), 0);
        for (session, volume) in unused {
            if !self.is_alone(&session, &volume) {
                continue;
            }
            let Some(why) = self.judge(&volume, &handles).await? else { continue };
            let key = volume.lv_uuid.clone();
            if suspects.contains(&key) {
                orphans += 1;
                self.settle(Orphan { session, volume, why }, &here).await;
            }
            found.insert(key);
        }
        self.fleet.found_orphans(orphans);
        tracing::info!(orphans = found.len(), "looked for orphaned volumes");
        Ok(found)
    }

    /// The volumes of all nodes that were never used.
    async fn unused(&self) -> Vec<(Session, UnusedVolume)> {
        let mut unused = Vec::new();
        for Linked { session, .. } in self.fleet.all_linked() {
            let request = ListUnusedRequest { age_seconds: self.age() };
            match in_time(StockClient::new(session.channel()).list_unused(request)).await {
                Ok(answer) => {
                    let volumes = answer.into_inner().volumes;
                    unused.extend(volumes.into_iter().map(|volume| (session.clone(), volume)));
                }
                Err(status) => {
                    tracing::warn!(node = %session.node(), error = status.message(), "a node did not list its unused volumes");
                }
            }
        }
        unused
    }

    /// Whether no other node can have the volume's group.
    fn is_alone(&self, session: &Session, volume: &UnusedVolume) -> bool {
        let id = volume.volume_id.parse::<VolumeId>();
        id.is_ok_and(|id| uncontested(&self.fleet, &self.nodes, session.object(), &id.vg).is_ok())
    }

    /// Why the volume is an orphan; `None` where it is none, or nobody can tell.
    async fn judge(
        &self,
        volume: &UnusedVolume,
        handles: &VolumeHandles,
    ) -> Result<Option<String>, ClusterError> {
        if handles.contains(&volume.volume_id) || volume.age_seconds < self.age() {
            return Ok(None);
        }
        let Some(uid) = claim_uid(&volume.name) else { return Ok(None) };
        let (namespace, name) = (&volume.claim_namespace, &volume.claim_name);
        if namespace.is_empty() || name.is_empty() {
            return Ok(None);
        }
        Ok(match self.cluster.claim(namespace, name).await? {
            None => Some(format!("its claim {namespace}/{name} is gone")),
            Some(claim) if claim.uid != uid => Some(format!("its claim {namespace}/{name} was made anew")),
            Some(claim) => {
                claim.volume.map(|other| format!("its claim {namespace}/{name} is bound to volume {other}"))
            }
        })
    }

    /// Tells of an orphan, and removes it where that is asked for and allowed.
    async fn settle(&self, orphan: Orphan, here: &ClusterId) {
        let Orphan { session, volume, why } = &orphan;
        if !self.collect {
            let note = format!(
                "volume {} was never used, and {why}: delete it with lvremove if nobody needs it, or let the \
                 controller do so with collect-orphans",
                volume.volume_id
            );
            return self.tell(&orphan, "OrphanedVolume", note);
        }
        match self.remove(session, volume, here).await {
            Ok(()) => {
                let note = format!("volume {} was removed: it was never used, and {why}", volume.volume_id);
                self.tell(&orphan, "OrphanRemoved", note);
            }
            Err(reason) => {
                let note = format!(
                    "volume {} was never used, and {why}; it is not removed: {reason}",
                    volume.volume_id
                );
                self.tell(&orphan, "OrphanedVolume", note);
            }
        }
    }

    /// In seconds.
    fn age(&self) -> u64 {
        self.fleet.pace().orphan_age.as_secs()
    }

    async fn remove(&self, session: &Session, volume: &UnusedVolume, here: &ClusterId) -> Result<(), String> {
        if volume.cluster != here.as_str() {
            return Err("it was made for another cluster, or nobody told for which".to_owned());
        }
        match self.cluster.volume_uid(&volume.name).await {
            Ok(None) => {}
            Ok(Some(_)) => return Err(format!("there is a PersistentVolume {}", volume.name)),
            Err(error) => return Err(chain(&error)),
        }
        if !self.leadership.holds() {
            return Err("this replica is the leader no more".to_owned());
        }
        // The API server may have taken its time.
        if !self.is_alone(session, volume) {
            return Err("another node may have its volume group now".to_owned());
        }
        let request = RemoveUnusedRequest {
            volume_id: volume.volume_id.clone(),
            lv_uuid: volume.lv_uuid.clone(),
            cluster: volume.cluster.clone(),
            age_seconds: self.age(),
        };
        let removed = in_time(StockClient::new(session.channel()).remove_unused(request)).await;
        removed.map(drop).map_err(|status| status.message().to_owned())
    }

    fn tell(&self, orphan: &Orphan, reason: &'static str, note: String) {
        let node = orphan.session.object();
        tracing::warn!(node, volume = orphan.volume.volume_id, note, "an orphaned volume");
        let subject = Subject::Node(node.to_owned());
        self.events.tell(Notice { subject, warning: true, reason, action: "CollectOrphans", note });
    }
}

async fn in_time<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = || Status::unavailable("the node did not answer in time");
    timeout(PATIENCE, call).await.unwrap_or_else(|_| Err(late()))
}

/// The UID of the claim that a volume was made for: csi-provisioner names volumes by it.
fn claim_uid(name: &str) -> Option<&str> {
    name.strip_prefix("pvc-").filter(|uid| Uuid::try_parse(uid).is_ok())
}

impl fmt::Debug for Orphans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orphans").field("collect", &self.collect).finish_non_exhaustive()
    }
}
