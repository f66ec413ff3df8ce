use std::fmt;
use std::time::SystemTime;

use super::LEAF_RENEWAL;
use super::issue::{self, IssueError, Leaf};
use super::state::{Due, Next, Signer, State, seconds};
use super::store::{Found, Store, StoreError};
use crate::cluster::Cluster;

/// How often a write is tried again that somebody else was faster with.
const TRIES: usize = 5;

/// The objects that hold authorities; they exist before the controller starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The Secret with the keys.
    pub secret: String,
    /// The ConfigMap with the certificates, which every node has mounted.
    pub config_map: String,
}

/// An authority that cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// What is stored cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No certificate can be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// Its time is over, or has not come.
    #[error("the authority {0} is not good now: is this machine's clock right?")]
    Time(String),
    /// Others write the same objects all the time.
    #[error("others keep changing the authority's Secret or ConfigMap")]
    Crowded,
}

/// The authority, and what this replica has had signed by it.
pub struct Authority {
    store: Store,
    /// By whom this replica's certificate is signed, and when it was.
    signed: Option<(String, SystemTime)>,
}

impl Authority {
    /// The authority in these objects of the driver's namespace.
    pub fn new(cluster: &Cluster, names: Names) -> Self {
        Self { store: Store::new(cluster, names), signed: None }
    }

    /// Does what is due at that time: makes the first authority where there is none; as leader makes the
    /// next one, has it sign, and forgets the former one; sees to it that the nodes have what they need.
    /// Gives a new certificate for this replica where it is to use one from now on.
    ///
    /// # Errors
    /// See [`AuthorityError`]; the certificate that is in use stays good.
    pub async fn round(&mut self, leader: bool, now: SystemTime) -> Result<Option<Leaf>, AuthorityError> {
        for _ in 0..TRIES {
            if let Some(state) = self.step(leader, now).await? {
                return self.sign(&state.current, now);
            }
        }
        Err(AuthorityError::Crowded)
    }

    /// The state after all that is due was done; `None` where somebody else was faster.
    async fn step(&self, leader: bool, now: SystemTime) -> Result<Option<State>, AuthorityError> {
        let found = self.store.read().await?;
        let (state, change) = match found.state.clone() {
            None => (first(now)?, true),
            Some(state) if leader => advance(state, now)?,
            Some(state) => (state, false),
        };
        let found = match change {
            false => found,
            true => match self.store.write(found, state.clone()).await? {
                None => return Ok(None),
                Some(found) => found,
            },
        };
        // The bundle is the leader's to change. The first controller may have ended between its two writes.
        let published = if leader {
            self.store.publish(&state.bundle()).await?
        } else {
            self.store.publish_unless(&state.bundle(), &state.current.certificate).await?
        };
        match published {
            false => Ok(None),
            true if leader => self.note(found, state, now).await,
            true => Ok(Some(state)),
        }
    }

    /// Writes down when the next authority was published, if that is news.
    async fn note(
        &self,
        found: Found,
        mut state: State,
        now: SystemTime,
    ) -> Result<Option<State>, AuthorityError> {
        let Some(next) = state.next.as_mut().filter(|next| next.published.is_none()) else {
            return Ok(Some(state));
        };
        next.published = Some(seconds(now));
        Ok(self.store.write(found, state.clone()).await?.map(|_| state))
    }

    fn sign(&mut self, signer: &Signer, now: SystemTime) -> Result<Option<Leaf>, AuthorityError> {
        if !signer.is_good(now) {
            return Err(AuthorityError::Time(signer.name.clone()));
        }
        let young = |at: &SystemTime| now.duration_since(*at).is_ok_and(|age| age < LEAF_RENEWAL);
        if self.signed.as_ref().is_some_and(|(by, at)| *by == signer.name && young(at)) {
            return Ok(None);
        }
        let leaf = issue::leaf(signer, now)?;
        self.signed = Some((signer.name.clone(), now));
        Ok(Some(leaf))
    }
}

fn first(now: SystemTime) -> Result<State, IssueError> {
    let first = issue::signer(now)?;
    tracing::info!(authority = first.name, "making the first authority");
    Ok(State::new(first))
}

/// The state that is due, and whether it is another than before.
fn advance(state: State, now: SystemTime) -> Result<(State, bool), IssueError> {
    let due = state.due(now);
    if due != Due::Nothing {
        tracing::info!(?due, authority = state.current.name, "changing the authority");
    }
    Ok(match due {
        Due::Nothing => (state, false),
        Due::Next => {
            let next = Next { signer: issue::signer(now)?, published: None };
            (State { next: Some(next), ..state }, true)
        }
        Due::Switch => (state.switch(now), true),
        Due::Forget => (State { former: None, ..state }, true),
        Due::Anew => (State::new(issue::signer(now)?), true),
    })
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("signed", &self.signed).finish_non_exhaustive()
    }
}
