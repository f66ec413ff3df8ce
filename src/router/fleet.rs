use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Pace;
use super::disputes::Dispute;
use super::member::Member;
use super::members::Members;
use super::refusals::Refusals;
use crate::cluster::KnownNodes;
use crate::link::Session;
use crate::types::{Bytes, NodeName, NodeState, VgName, VgUuid};

/// The nodes that have, or have had, a link, and what the links tell: all that the controller knows.
#[derive(Debug)]
pub struct Fleet {
    pace: Pace,
    /// Since when nodes can be linked.
    opened: OnceLock<Instant>,
    members: Mutex<Members>,
    orphans: AtomicU64,
    changes: watch::Sender<u64>,
}

/// How a node stands.
#[derive(Debug, Clone)]
pub(super) enum Standing {
    /// It has a link, and its state is known.
    Linked(Box<Linked>),
    /// It has a link, and its state is on its way.
    Joining,
    /// It has no link, for so long; counted from when nodes could be linked where it never had one.
    Away(Duration),
}

/// A node that can be asked.
#[derive(Debug, Clone)]
pub(super) struct Linked {
    pub(super) session: Session,
    pub(super) state: NodeState,
    pub(super) refusals: Refusals,
}

/// Who shows a group.
#[derive(Debug)]
pub(super) enum Owner {
    /// This node.
    One(Session),
    /// Several, which cannot be.
    Many(Vec<String>),
    /// Nobody.
    Nobody,
}

impl Fleet {
    /// Nobody is linked yet, and nobody can be.
    pub fn new(pace: Pace) -> Arc<Self> {
        Arc::new(Self {
            pace,
            opened: OnceLock::new(),
            members: Mutex::default(),
            orphans: AtomicU64::new(0),
            changes: watch::channel(0).0,
        })
    }

    /// The times to go by.
    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
    }

    /// Has a new value whenever a link came or went, or a node's groups changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How many orphaned volumes were found the last time that this replica looked for them.
    pub fn orphans(&self) -> u64 {
        self.orphans.load(Ordering::Relaxed)
    }

    pub(super) fn found_orphans(&self, count: usize) {
        self.orphans.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A link has come.
    pub(super) fn linked(&self, session: &Session) {
        self.members().link(session, Instant::now());
        self.changed();
    }

    /// A link has ended.
    pub(super) fn ended(&self, session: &Session) {
        let lose = |member: &mut Member| member.lose(session.id(), Instant::now());
        if self.members().change(session.node(), lose) {
            self.changed();
        }
    }

    /// A link has told the state of its node.
    pub(super) fn told(&self, session: &Session, state: NodeState) {
        let tell = |member: &mut Member| member.tell(session.id(), state, Instant::now());
        if self.members().change(session.node(), tell) {
            self.changed();
        }
    }

    /// From now on nodes can be linked: the controller counts as new for a while.
    pub(super) fn open(&self) {
        self.opened.get_or_init(Instant::now);
    }

    /// Whether nodes can be linked.
    pub fn is_open(&self) -> bool {
        self.opened.get().is_some()
    }

    /// For how long nodes have been able to be linked.
    fn open_for(&self) -> Duration {
        self.opened.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Whether nodes have been able to be linked for so short a time that some may not have dialled yet.
    pub(super) fn is_new(&self) -> bool {
        self.open_for() < self.pace.away
    }

    pub(super) fn standing(&self, node: &NodeName) -> Standing {
        match self.members().get(node) {
            None => Standing::Away(self.open_for()),
            Some(member) => standing(member),
        }
    }

    /// The nodes that can be asked.
    pub(super) fn all_linked(&self) -> Vec<Linked> {
        let linked = |member: &Member| match standing(member) {
            Standing::Linked(linked) => Some(*linked),
            Standing::Joining | Standing::Away(_) => None,
        };
        let mut all: Vec<Linked> = self.members().all().filter_map(linked).collect();
        all.sort_unstable_by(|a, b| a.session.object().cmp(b.session.object()));
        all
    }

    /// How many nodes have a link.
    pub fn count(&self) -> usize {
        self.members().all().filter(|member| member.link.is_some()).count()
    }

    /// The names of the Node objects of nodes with a link.
    pub fn objects(&self) -> BTreeSet<String> {
        let members = self.members();
        members.all().filter(|member| member.link.is_some()).map(|member| member.object.clone()).collect()
    }

    /// Whether the node with that Node object has a link.
    pub(super) fn has_link(&self, object: &str) -> bool {
        self.members().of_object(object).is_some_and(|member| member.link.is_some())
    }

    pub(super) fn owner(&self, vg: &VgUuid) -> Owner {
        let members = self.members();
        let mut shown: Vec<&Session> =
            members.showing(vg).filter_map(|member| member.link.as_ref()).collect();
        match shown.as_slice() {
            [] => Owner::Nobody,
            [one] => Owner::One((*one).clone()),
            _ => {
                shown.sort_unstable_by_key(|session| session.object());
                Owner::Many(shown.into_iter().map(|session| session.object().to_owned()).collect())
            }
        }
    }

    /// The Node objects of the nodes that show the group, without that one.
    pub(super) fn others_with(&self, vg: &VgUuid, object: &str) -> Vec<String> {
        let members = self.members();
        let others = members.showing(vg).filter(|member| member.object != object);
        let mut others: Vec<String> = others.map(|member| member.object.clone()).collect();
        others.sort_unstable();
        others
    }

    /// The names of all groups that are shown.
    pub(super) fn group_names(&self) -> BTreeSet<VgName> {
        let members = self.members();
        let states = members.all().filter(|member| member.link.is_some()).flat_map(|member| &member.state);
        states.flat_map(|state| &state.groups).map(|group| group.name.clone()).collect()
    }

    /// The groups that are shown, each with the Node objects of all nodes that show it.
    pub(super) fn groups(&self) -> BTreeMap<VgUuid, BTreeSet<String>> {
        let members = self.members();
        let objects = |vg: &VgUuid| members.showing(vg).map(|member| member.object.clone()).collect();
        members.groups().map(|vg| (vg.clone(), objects(vg))).collect()
    }

    /// For how long the node with that Node object, linked all the while, has not shown the group; `None`
    /// where that cannot be said.
    pub(super) fn lacks_for(&self, object: &str, vg: &VgUuid) -> Option<Duration> {
        self.members().of_object(object)?.lacks_for(vg, Instant::now())
    }

    /// What is not settled about the group, if the node with that Node object is part of it.
    pub(super) fn disputed(&self, vg: &VgUuid, object: &str) -> Option<Dispute> {
        self.members().disputed(vg, object).cloned()
    }

    /// Sees which disputes about groups are settled by now.
    pub(super) fn settle(&self, known: &KnownNodes) {
        self.members().settle(known, self.pace.away);
    }

    /// The node has refused a volume of that size. `generation` is the refusal's own; without it, whatever
    /// state comes next counts as newer.
    pub(super) fn refused(&self, node: &NodeName, vg: Option<VgName>, size: Bytes, generation: Option<u64>) {
        let mut members = self.members();
        let Some(member) = members.get_mut(node) else { return };
        let held = member.state.as_ref().map_or(0, |state| state.generation);
        let generation = generation.unwrap_or(held);
        // A state that is newer than the refusal may have come before it.
        if generation >= held {
            member.refusals.note(vg, size, generation);
        }
    }
}

fn standing(member: &Member) -> Standing {
    match (&member.link, &member.state) {
        (None, _) => Standing::Away(member.since.elapsed()),
        (Some(_), None) => Standing::Joining,
        (Some(session), Some(state)) => Standing::Linked(Box::new(Linked {
            session: session.clone(),
            state: state.clone(),
            refusals: member.refusals.clone(),
        })),
    }
}
