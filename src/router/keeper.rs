use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::contest::{Disputed, disputed};
use super::{Fleet, Lost};
use crate::cluster::{Events, KnownNodes, LabelError, Labels, Leadership, Nodes, Notice, Replicas, Subject};
use crate::types::{VgUuid, chain};

/// Keeps the labels that say on which node a group is. A label that no node has is added by every replica that has
/// a link to the group's node; all else is the leader's. A node that has no link keeps its labels; a group that
/// shows up on another node takes its label along once the old one has had no link to any replica for
/// [`Pace::away`](super::Pace), or has been linked for as long and shows it no more. Where both have shown it at the
/// same time, the first does not do: somebody must say which has the copy.
pub struct Keeper {
    /// The nodes with links.
    pub fleet: Arc<Fleet>,
    /// The nodes of the cluster.
    pub nodes: Nodes,
    /// Their labels.
    pub labels: Labels,
    /// What the replicas have recorded.
    pub replicas: Replicas,
    /// Whether this replica is the leader.
    pub leadership: Leadership,
    /// The groups that are declared lost.
    pub lost: Arc<Lost>,
    /// Where people are told.
    pub events: Events,
}

/// What the last look that saw the list of lost groups had before it.
#[derive(Debug, Default)]
struct LastLook {
    groups: BTreeSet<VgUuid>,
    at: Option<Instant>,
}

impl LastLook {
    /// Whether there is a new group, or the look is `every` old.
    fn is_stale(&self, groups: &BTreeSet<VgUuid>, every: Duration) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= every) || !groups.is_subset(&self.groups)
    }
}

impl Keeper {
    /// Runs until `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut changes, mut last) = (self.fleet.changes(), LastLook::default());
        loop {
            changes.mark_unchanged();
            self.look_for_lost(&mut last).await;
            self.settle();
            if self.leadership.holds() {
                self.round().await;
            } else if stop.run_until_cancelled(self.add_missing()).await.is_none() {
                return;
            }
            let news = async {
                sleep(self.fleet.pace().gather).await;
                // The fleet outlives this.
                let _ = changes.changed().await;
            };
            tokio::select! {
                () = stop.cancelled() => return,
                _ = timeout(self.fleet.pace().round, news) => {}
            }
        }
    }

    /// Each replica does this: a node may have a link to one of them only.
    async fn look_for_lost(&self, last: &mut LastLook) {
        let groups: BTreeSet<VgUuid> = self.fleet.groups().into_keys().collect();
        if !last.is_stale(&groups, self.fleet.pace().away) {
            last.groups = groups;
        } else if self.lost.look(&self.fleet).await {
            *last = LastLook { groups, at: Some(Instant::now()) };
        }
    }

    /// Each replica remembers for itself what is disputed.
    fn settle(&self) {
        let known = self.nodes.known();
        if known.live {
            self.fleet.settle(&known);
        }
    }

    /// What a replica does that does not lead. A node whose object was made anew has lost its labels, and the leader
    /// need not have a link to it.
    async fn add_missing(&self) {
        let known = self.nodes.known();
        if !known.live {
            return;
        }
        for (vg, shown) in self.fleet.groups() {
            let Some(node) = only(&shown).filter(|node| known.nodes.contains_key(*node)) else { continue };
            if known.labelled(&vg).is_empty()
                && disputed(&self.fleet, &known, node, &vg).is_none()
                && let Err(error) = self.labels.add(node, &vg).await
            {
                not_kept(&vg, &error);
            }
        }
    }

    async fn round(&mut self) {
        if let Err(error) = self.replicas.look().await {
            tracing::warn!(error = chain(&error), "the records of the replicas' links cannot be read");
        }
        let known = self.nodes.known();
        if !known.live {
            return;
        }
        for (vg, shown) in self.fleet.groups() {
            if !self.leadership.holds() {
                return;
            }
            let result = match only(&shown) {
                Some(node) => self.keep(&known, &vg, node).await,
                None => {
                    self.shown_twice(&vg, &shown);
                    Ok(())
                }
            };
            if let Err(error) = result {
                not_kept(&vg, &error);
            }
        }
        self.forget(&known).await;
    }

    /// Sees to it that the one node that shows the group has its label, and no other.
    async fn keep(&self, known: &KnownNodes, vg: &VgUuid, node: &str) -> Result<(), LabelError> {
        // A node without an object, as one that was just removed, can have no label.
        let Some(object) = known.nodes.get(node) else { return Ok(()) };
        if let Some(disputed) = disputed(&self.fleet, known, node, vg) {
            self.stays(node, &disputed);
            return Ok(());
        }
        let mut held = false;
        for other in known.labelled(vg).into_iter().filter(|name| *name != node).collect::<Vec<_>>() {
            if self.has_lost(other, vg) {
                self.labels.remove(other, vg).await?;
                self.moved(vg, other, node);
            } else {
                held = true;
            }
        }
        if !held && !object.groups.contains(vg) {
            self.labels.add(node, vg).await?;
        }
        Ok(())
    }

    /// Whether it is certain that the node does not have the group any more.
    fn has_lost(&self, node: &str, vg: &VgUuid) -> bool {
        let away = self.fleet.pace().away;
        match self.fleet.has_link(node) {
            true => self.fleet.lacks_for(node, vg).is_some_and(|time| time >= away),
            false => self.replicas.none_for(node, away),
        }
    }

    /// Takes labels away from nodes that have been linked for long and show no such group.
    async fn forget(&self, known: &KnownNodes) {
        for (node, vg) in self.stale(known) {
            if !self.leadership.holds() {
                return;
            }
            if let Err(error) = self.labels.remove(&node, &vg).await {
                tracing::warn!(%vg, node, error = chain(&error), "a stale label cannot be removed");
            }
        }
    }

    fn stale(&self, known: &KnownNodes) -> Vec<(String, VgUuid)> {
        let lacks = |node: &str, vg: &VgUuid| {
            self.fleet.lacks_for(node, vg).is_some_and(|time| time >= self.fleet.pace().forgotten)
        };
        let labels =
            known.nodes.iter().flat_map(|(node, object)| object.groups.iter().map(move |vg| (node, vg)));
        labels.filter(|(node, vg)| lacks(node, vg)).map(|(node, vg)| (node.clone(), vg.clone())).collect()
    }

    fn moved(&self, vg: &VgUuid, from: &str, to: &str) {
        tracing::info!(%vg, from, to, "a volume group has moved");
        for node in [from, to] {
            self.events.tell(Notice {
                subject: Subject::Node(node.to_owned()),
                warning: false,
                reason: "VolumeGroupMoved",
                action: "Label",
                note: format!(
                    "volume group {vg} has moved from node {from} to node {to}, and its volumes with it"
                ),
            });
        }
    }

    fn stays(&self, node: &str, disputed: &Disputed) {
        for subject in disputed.others().chain([node]) {
            self.events.tell(Notice {
                subject: Subject::Node(subject.to_owned()),
                warning: true,
                reason: "VolumeGroupDisputed",
                action: "Label",
                note: disputed.to_string(),
            });
        }
    }

    fn shown_twice(&self, vg: &VgUuid, nodes: &BTreeSet<String>) {
        let all: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let all = all.join(" and ");
        for node in nodes {
            self.events.tell(Notice {
                subject: Subject::Node(node.clone()),
                warning: true,
                reason: "VolumeGroupShownTwice",
                action: "Create",
                note: format!(
                    "volume group {vg} is shown by nodes {all}: no new volume is made in it. Are they copies \
                     of one disk (then give one a new UUID with vgimportclone), or one disk at two nodes?"
                ),
            });
        }
    }
}

fn not_kept(vg: &VgUuid, error: &LabelError) {
    tracing::warn!(%vg, error = chain(error), "a volume group's label cannot be kept");
}

fn only(nodes: &BTreeSet<String>) -> Option<&str> {
    match nodes.len() {
        1 => nodes.first().map(String::as_str),
        _ => None,
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
