use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::member::Member;
use crate::cluster::KnownNodes;
use crate::types::VgUuid;

/// The groups that several nodes have shown at the same time, until that is settled: one node has a copy, and which
/// one does not become clear by the other's going away. This replica remembers what its own links told, for as long
/// as it runs. Another one that leads after it has most likely seen the same; one that starts while a node is away
/// has not, and takes what is shown then for a group that moved.
#[derive(Debug, Default)]
pub(super) struct Disputes(HashMap<VgUuid, Dispute>);

/// What is remembered of one group.
#[derive(Debug, Clone, Default)]
pub(super) struct Dispute {
    /// The Node objects of those that have shown it.
    nodes: BTreeSet<String>,
    /// The last Node object that alone had the label, and its UID.
    labelled: Option<(String, String)>,
}

impl Dispute {
    /// The others that may have the group itself.
    pub(super) fn others(&self, object: &str) -> Vec<String> {
        self.nodes.iter().filter(|name| *name != object).cloned().collect()
    }

    /// Whether the node was the last to have the label: it gets it back when it is registered anew.
    pub(super) fn was_labelled(&self, object: &str) -> bool {
        self.labelled.as_ref().is_some_and(|(name, _)| name == object)
    }

    /// Somebody who takes the label off a node that is away says that it has the group no more. One whose object was
    /// deleted, or made anew since, says nothing: clouds do that to nodes that are off.
    fn follow_label(&mut self, vg: &VgUuid, known: &KnownNodes, is_linked: impl Fn(&str) -> bool) {
        let uid = |name: &str| known.nodes.get(name).map(|node| node.uid.clone());
        match known.labelled(vg).as_slice() {
            [] => {
                let freed =
                    |(name, of): &mut (String, String)| uid(name).as_ref() == Some(of) && !is_linked(name);
                if let Some((name, _)) = self.labelled.take_if(freed) {
                    self.nodes.remove(&name);
                }
            }
            [name] => self.labelled = uid(name).map(|uid| ((*name).to_owned(), uid)),
            _ => {}
        }
    }
}

impl Disputes {
    /// The nodes show the group, all at this moment.
    pub(super) fn begin(&mut self, vg: &VgUuid, nodes: BTreeSet<String>) {
        let dispute = self.0.entry(vg.clone()).or_default();
        if !nodes.is_subset(&dispute.nodes) {
            tracing::warn!(%vg, ?nodes, "a volume group is shown by several nodes: its label stays where it is");
            dispute.nodes.extend(nodes);
        }
    }

    /// The dispute that the node is part of.
    pub(super) fn of(&self, vg: &VgUuid, object: &str) -> Option<&Dispute> {
        self.0.get(vg).filter(|dispute| dispute.nodes.contains(object))
    }

    /// Lets those nodes out that have been linked and without the group for `away`, and those that somebody has taken
    /// the label off.
    pub(super) fn settle<'a>(
        &mut self,
        known: &KnownNodes,
        away: Duration,
        member: impl Fn(&str) -> Option<&'a Member>,
    ) {
        let now = Instant::now();
        let is_linked = |name: &str| member(name).is_some_and(|member| member.link.is_some());
        self.0.retain(|vg, dispute| {
            let lacks = |name: &str| member(name)?.lacks_for(vg, now);
            dispute.nodes.retain(|name| lacks(name).is_none_or(|time| time < away));
            dispute.follow_label(vg, known, is_linked);
            let lasts = dispute.nodes.len() > 1;
            if !lasts {
                tracing::info!(%vg, left = ?dispute.nodes, "it is settled which node has the volume group");
            }
            lasts
        });
    }
}
