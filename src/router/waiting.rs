use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Fleet;
use crate::cluster::{
    ClassView, Cluster, ClusterError, Events, Leadership, Nodes, Notice, StartingPod, Subject, WaitingClaim,
    WaitingClaims,
};
use crate::csi::DRIVER_NAME;
use crate::types::{ClassParameters, NODE_KEY, VgName, chain};

/// Tells, as the leader, why a claim waits for ever where nobody else says so: its class chooses places by a
/// key that no node has, or names a group that is nowhere, or its pod has a node without the scheduler, which then never chooses one for the
/// claim. Nothing of that ever reaches the driver as a call.
///
/// A claim is looked into that has waited for two rounds in a row.
pub struct Waiting {
    /// For the times to go by.
    pub fleet: Arc<Fleet>,
    /// The cluster.
    pub cluster: Cluster,
    /// Its nodes.
    pub nodes: Nodes,
    /// Whether this replica is the leader.
    pub leadership: Leadership,
    /// Where people are told.
    pub events: Events,
}

/// What was read in one round.
#[derive(Default)]
struct Read {
    classes: HashMap<String, Option<ClassView>>,
    pods: HashMap<String, Vec<StartingPod>>,
    groups: Option<BTreeSet<VgName>>,
    /// Whether a node that has groups by its labels is not linked: nobody knows their names then.
    some_away: Option<bool>,
}

impl Waiting {
    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(self.fleet.pace().waiting) => {}
            }
            if self.leadership.holds() && stop.run_until_cancelled(self.lead()).await.is_none() {
                return;
            }
        }
    }

    /// Watches the claims for as long as this replica is the leader.
    async fn lead(&self) {
        let (claims, watch) = WaitingClaims::new(&self.cluster);
        tokio::select! {
            () = watch => {}
            () = self.look(&claims) => {}
        }
    }

    async fn look(&self, claims: &WaitingClaims) {
        let mut before = HashSet::new();
        while self.leadership.holds() {
            let (mut read, all) = (Read::default(), claims.all());
            for claim in all.iter().filter(|claim| before.contains(&claim.uid)) {
                if let Err(error) = self.judge(claim, &mut read).await {
                    tracing::warn!(error = chain(&error), "why claims wait cannot be looked into");
                    break;
                }
            }
            before = all.into_iter().map(|claim| claim.uid).collect();
            sleep(self.fleet.pace().waiting).await;
        }
    }

    async fn judge(&self, claim: &WaitingClaim, read: &mut Read) -> Result<(), ClusterError> {
        let class = read.class(&self.cluster, &claim.class).await?;
        let Some(class) = class.filter(|class| class.provisioner == DRIVER_NAME) else { return Ok(()) };
        let strange: Vec<&str> =
            class.topology_keys.iter().map(String::as_str).filter(|key| *key != NODE_KEY).collect();
        if !strange.is_empty() {
            self.tell(claim, "TopologyKeyUnknown", unknown_key(&claim.class, &strange));
            return Ok(());
        }
        if let Some(vg) = self.group_nowhere(&class, read) {
            self.tell(
                claim,
                "VolumeGroupUnknown",
                unknown_group(&claim.class, &vg, read.groups(&self.fleet)),
            );
        }
        if class.waits_for_pod && !claim.has_node {
            let pods = read.pods(&self.cluster, &claim.namespace).await?;
            if let Some(pod) = pods.iter().find(|pod| pod.claims.contains(&claim.name))
                && self.still_waits(claim).await?
            {
                self.tell(claim, "PodBypassesScheduler", bypasses(pod));
            }
        }
        Ok(())
    }

    /// The group that the class names, where no node has it; nothing while a node that may have it is away. A name
    /// that makes no sense is refused when a volume is asked for.
    fn group_nowhere(&self, class: &ClassView, read: &mut Read) -> Option<VgName> {
        let given = class.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let vg = ClassParameters::volume_group(given).ok()??;
        if self.fleet.is_new() || read.some_away(&self.fleet, &self.nodes) {
            return None;
        }
        let names = read.groups(&self.fleet);
        (!names.is_empty() && !names.contains(&vg)).then_some(vg)
    }

    /// The scheduler gives a pod its node only when its claims have volumes: one that has none even now, after
    /// the pod was seen to have a node, will have none.
    async fn still_waits(&self, claim: &WaitingClaim) -> Result<bool, ClusterError> {
        let now = self.cluster.claim(&claim.namespace, &claim.name).await?;
        Ok(now.is_some_and(|now| now.uid == claim.uid && now.volume.is_none()))
    }

    fn tell(&self, claim: &WaitingClaim, reason: &'static str, note: String) {
        let WaitingClaim { namespace, name, uid, .. } = claim.clone();
        let subject = Subject::Claim { namespace, name, uid };
        self.events.tell(Notice { subject, warning: true, reason, action: "Provision", note });
    }
}

impl Read {
    async fn class(&mut self, cluster: &Cluster, name: &str) -> Result<Option<ClassView>, ClusterError> {
        if !self.classes.contains_key(name) {
            self.classes.insert(name.to_owned(), cluster.class(name).await?);
        }
        Ok(self.classes.get(name).cloned().flatten())
    }

    fn groups(&mut self, fleet: &Fleet) -> &BTreeSet<VgName> {
        self.groups.get_or_insert_with(|| fleet.group_names())
    }

    fn some_away(&mut self, fleet: &Fleet, nodes: &Nodes) -> bool {
        *self.some_away.get_or_insert_with(|| {
            let known = nodes.known();
            known.nodes.iter().any(|(name, node)| !node.groups.is_empty() && !fleet.has_link(name))
        })
    }

    async fn pods(&mut self, cluster: &Cluster, namespace: &str) -> Result<&[StartingPod], ClusterError> {
        if !self.pods.contains_key(namespace) {
            self.pods.insert(namespace.to_owned(), cluster.starting_pods(namespace).await?);
        }
        Ok(self.pods.get(namespace).map_or(&[], Vec::as_slice))
    }
}

fn unknown_key(class: &str, keys: &[&str]) -> String {
    format!(
        "StorageClass {class} has allowedTopologies with {}, and the nodes of {DRIVER_NAME} are known by {NODE_KEY} \
         only: no volume can be made. Make the class anew with that key, or without allowedTopologies",
        keys.join(" and ")
    )
}

fn unknown_group(class: &str, vg: &VgName, there: &BTreeSet<VgName>) -> String {
    let names: Vec<String> = there.iter().map(ToString::to_string).collect();
    format!(
        "StorageClass {class} names volume group {vg}, and no node that is connected has one of that name that \
         Quarry is told to use: no volume can be made. There are: {}",
        names.join(", ")
    )
}

fn bypasses(pod: &StartingPod) -> String {
    let StartingPod { name, node, .. } = pod;
    format!(
        "pod {name} names its node {node} by itself (spec.nodeName), so that no scheduler chooses a node for \
         this claim, and no volume is made. Use a nodeSelector with kubernetes.io/hostname instead"
    )
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}
