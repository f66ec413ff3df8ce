use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::refusals::Refusals;
use crate::link::Session;
use crate::types::{NodeState, VgUuid};

/// How many groups of a node are remembered that it shows no more.
const MOST_GONE: usize = 256;

/// A node that has had a link.
#[derive(Debug)]
pub(super) struct Member {
    /// The name of its Node object.
    pub(super) object: String,
    /// The link, while it lives.
    pub(super) link: Option<Session>,
    /// When the present link came, or the last one ended.
    pub(super) since: Instant,
    /// What the present link has told last.
    pub(super) state: Option<NodeState>,
    /// When the present link told for the first time.
    told: Option<Instant>,
    /// When groups were shown last.
    shown: HashMap<VgUuid, Instant>,
    pub(super) refusals: Refusals,
}

impl Member {
    pub(super) fn new(session: &Session, now: Instant) -> Self {
        Self {
            object: session.object().to_owned(),
            link: Some(session.clone()),
            since: now,
            state: None,
            told: None,
            shown: HashMap::new(),
            refusals: Refusals::default(),
        }
    }

    /// A link of this node has come: it takes the place of an older one. `false` if there is a newer one.
    pub(super) fn link(&mut self, session: &Session, now: Instant) -> bool {
        if self.link.as_ref().is_some_and(|link| link.id() > session.id()) {
            return false;
        }
        self.link = Some(session.clone());
        session.object().clone_into(&mut self.object);
        (self.since, self.state, self.told) = (now, None, None);
        true
    }

    /// A link of this node has ended. `false` if it was not the present one.
    pub(super) fn lose(&mut self, id: u64, now: Instant) -> bool {
        if self.link.as_ref().is_none_or(|link| link.id() != id) {
            return false;
        }
        self.link = None;
        (self.since, self.state, self.told) = (now, None, None);
        true
    }

    /// A link has told the node's state. `false` if nothing changed by it.
    pub(super) fn tell(&mut self, id: u64, state: NodeState, now: Instant) -> bool {
        if self.link.as_ref().is_none_or(|link| link.id() != id) {
            return false;
        }
        self.told.get_or_insert(now);
        match &self.state {
            None => self.refusals.begin(state.generation),
            Some(_) => self.refusals.outdate(state.generation),
        }
        let same = self.state.as_ref().is_some_and(|before| before.groups == state.groups);
        if self.shown.len() > MOST_GONE {
            // What is forgotten may have been shown up to now.
            self.shown.clear();
            self.told = Some(now);
        }
        self.shown.extend(state.groups.iter().map(|group| (group.uuid.clone(), now)));
        self.state = Some(state);
        !same
    }

    /// The groups that the node shows.
    pub(super) fn shown(&self) -> Vec<VgUuid> {
        self.state.iter().flat_map(|state| &state.groups).map(|group| group.uuid.clone()).collect()
    }

    fn shows(&self, vg: &VgUuid) -> bool {
        self.state.as_ref().is_some_and(|state| state.groups.iter().any(|group| group.uuid == *vg))
    }

    /// For how long the node, linked all the while, has not shown the group; `None` where that cannot be said.
    pub(super) fn lacks_for(&self, vg: &VgUuid, now: Instant) -> Option<Duration> {
        if self.shows(vg) {
            return None;
        }
        let told = self.told?;
        let since = self.shown.get(vg).map_or(told, |shown| told.max(*shown));
        Some(now - since)
    }
}
