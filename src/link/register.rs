use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Session;
use crate::types::NodeName;

/// The one live link of each node.
#[derive(Debug, Clone, Default)]
pub(super) struct Register(Arc<Mutex<HashMap<NodeName, Session>>>);

impl Register {
    fn links(&self) -> MutexGuard<'_, HashMap<NodeName, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this the node's link. An older one is closed: a node that dials again has lost it, even
    /// where this end has not noticed yet.
    pub(super) fn enter(&self, session: &Session) {
        let older = self.links().insert(session.node.clone(), session.clone());
        if let Some(older) = older {
            older.close("the node has made a newer link");
        }
    }

    /// Forgets the link, if it is still the node's.
    pub(super) fn leave(&self, session: &Session) {
        let mut links = self.links();
        if links.get(&session.node).is_some_and(|link| link.id == session.id) {
            links.remove(&session.node);
        }
    }
}
