use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use super::disputes::{Dispute, Disputes};
use super::member::Member;
use crate::cluster::KnownNodes;
use crate::link::Session;
use crate::types::{ByGroup, NodeName, VgUuid};

/// How long a node is remembered that has no link.
const MEMORY: Duration = Duration::from_secs(3600);

/// How often those are looked for that are remembered no more. Not with every link: when all nodes of a large
/// cluster dial at once, each would have all others looked through.
const SWEEP: Duration = Duration::from_secs(60);

/// The nodes that have, or have had, a link, by name and by the groups that they show.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_name: HashMap<NodeName, Member>,
    shown: ByGroup<NodeName>,
    disputes: Disputes,
    swept: Option<Instant>,
}

impl Members {
    pub(super) fn get(&self, node: &NodeName) -> Option<&Member> {
        self.by_name.get(node)
    }

    pub(super) fn get_mut(&mut self, node: &NodeName) -> Option<&mut Member> {
        self.by_name.get_mut(node)
    }

    /// The node with that Node object.
    pub(super) fn of_object(&self, object: &str) -> Option<&Member> {
        self.by_name.get(&object.parse().ok()?)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Member> {
        self.by_name.values()
    }

    /// The nodes that show the group.
    pub(super) fn showing(&self, vg: &VgUuid) -> impl Iterator<Item = &Member> {
        self.shown.of(vg).filter_map(|node| self.by_name.get(node))
    }

    /// The groups that are shown.
    pub(super) fn groups(&self) -> impl Iterator<Item = &VgUuid> {
        self.shown.groups()
    }

    /// A link has come.
    pub(super) fn link(&mut self, session: &Session, now: Instant) {
        self.sweep(now);
        let node = session.node();
        if self.by_name.contains_key(node) {
            self.change(node, |member| member.link(session, now));
        } else {
            self.by_name.insert(node.clone(), Member::new(session, now));
        }
    }

    /// Changes what is known of the node. Gives back whether `change` has changed anything.
    pub(super) fn change(&mut self, node: &NodeName, change: impl FnOnce(&mut Member) -> bool) -> bool {
        let Some(member) = self.by_name.get_mut(node) else { return false };
        let before = member.shown();
        let changed = change(member);
        let now = member.shown();
        if before != now {
            self.shown.change(node, &before, &now);
            for vg in now {
                self.dispute(&vg);
            }
        }
        changed
    }

    fn dispute(&mut self, vg: &VgUuid) {
        let nodes: BTreeSet<String> = self.showing(vg).map(|member| member.object.clone()).collect();
        if nodes.len() > 1 {
            self.disputes.begin(vg, nodes);
        }
    }

    /// What is not settled about the group, if the node with that Node object is part of it.
    pub(super) fn disputed(&self, vg: &VgUuid, object: &str) -> Option<&Dispute> {
        self.disputes.of(vg, object)
    }

    /// Sees which disputes are settled by now.
    pub(super) fn settle(&mut self, known: &KnownNodes, away: Duration) {
        let mut disputes = mem::take(&mut self.disputes);
        disputes.settle(known, away, |object| self.of_object(object));
        self.disputes = disputes;
    }

    /// Forgets nodes that have been gone for so long: they count as nodes that never were, which comes to the
    /// same. They show nothing.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now - swept >= SWEEP) {
            self.swept = Some(now);
            self.by_name.retain(|_, member| member.link.is_some() || now - member.since < MEMORY);
        }
    }
}
