use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::lease::{Leases, named, now, seconds, terms};
use super::{Cluster, ClusterError};

/// The lease whose holder is the leader.
pub const ELECTION: &str = "quarry-controller";

/// How long others wait for a leader that does not renew.
const TERM: Duration = Duration::from_secs(15);

/// How long after its last renewal a leader takes itself for one: less than [`TERM`], so that two never do.
const SURE: Duration = Duration::from_secs(10);

/// The time between two looks at the lease.
const ROUND: Duration = Duration::from_secs(5);

/// Whether this replica is the leader.
#[derive(Debug, Clone)]
pub struct Leadership {
    until: watch::Receiver<Option<Instant>>,
}

impl Leadership {
    /// Whether it is, now. To be asked before every act that only a leader may do.
    pub fn holds(&self) -> bool {
        self.until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits for the next renewal, gain or loss. `false` if there will be none.
    pub async fn changed(&mut self) -> bool {
        self.until.changed().await.is_ok()
    }

    /// Somebody who is the leader for as long as this process lives: where there is only one.
    pub fn for_ever() -> Self {
        let far = Instant::now() + Duration::from_secs(100 * 365 * 24 * 3600);
        Self { until: watch::channel(Some(far)).1 }
    }
}

/// What was seen of the lease, and when it was first seen so. Only the time that passes here counts: the
/// clocks of two machines need not agree.
struct Seen {
    holder: String,
    renewed: Option<MicroTime>,
    at: Instant,
}

/// The election of the one replica that moves labels, rotates the authority and judges orphans.
pub struct Election {
    leases: Leases,
    identity: String,
    seen: Option<Seen>,
    /// The lease as this replica has written it last, while it holds it.
    held: Option<Lease>,
    until: watch::Sender<Option<Instant>>,
}

impl Election {
    /// Stands for election as `identity`, which no other replica has.
    pub fn new(cluster: &Cluster, identity: &str) -> (Self, Leadership) {
        let (sender, until) = watch::channel(None);
        let election = Self {
            leases: Leases::new(cluster),
            identity: identity.to_owned(),
            seen: None,
            held: None,
            until: sender,
        };
        (election, Leadership { until })
    }

    /// Stands until `stop` is cancelled, and then gives up what it holds, so that nobody waits for it.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            self.round().await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(ROUND) => {}
            }
        }
        self.release().await;
    }

    /// One try to gain or keep the lease.
    pub async fn round(&mut self) {
        let was = self.holds();
        // Counted from before the question: the answer may have been long on its way.
        let asked = Instant::now();
        match self.attempt().await {
            Ok(true) => drop(self.until.send_replace(Some(asked + SURE))),
            Ok(false) => drop(self.until.send_replace(None)),
            // A leader stays one until its last renewal is too old.
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "the election's lease"),
        }
        if self.holds() != was {
            tracing::info!(leader = self.holds(), identity = self.identity, "leadership changed");
        }
    }

    fn holds(&self) -> bool {
        self.until.borrow().is_some_and(|until| Instant::now() < until)
    }

    async fn attempt(&mut self) -> Result<bool, ClusterError> {
        // Whoever holds the lease need not read it: where somebody else has written it, the write fails.
        if let Some(held) = self.held.take()
            && self.replace(held).await?
        {
            return Ok(true);
        }
        let Some(mut lease) = self.leases.get(ELECTION).await? else {
            let mut lease = named(ELECTION, BTreeMap::new());
            self.sign(&mut lease);
            self.held = won(self.leases.create(&lease).await)?;
            return Ok(self.held.is_some());
        };
        if !self.may_take(&mut lease) {
            return Ok(false);
        }
        self.replace(lease).await
    }

    /// `false` where somebody else was faster.
    async fn replace(&mut self, mut lease: Lease) -> Result<bool, ClusterError> {
        self.sign(&mut lease);
        self.held = won(self.leases.replace(ELECTION, &lease).await)?;
        Ok(self.held.is_some())
    }

    /// Whether the lease is ours, nobody's, or of somebody who has not renewed it for its whole term.
    fn may_take(&mut self, lease: &mut Lease) -> bool {
        let terms = terms(lease);
        let holder = terms.holder_identity.clone().unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            self.seen = None;
            return true;
        }
        let same = |seen: &&Seen| seen.holder == holder && seen.renewed == terms.renew_time;
        if let Some(seen) = self.seen.as_ref().filter(same) {
            let term = terms.lease_duration_seconds.and_then(|term| u64::try_from(term).ok());
            return seen.at.elapsed() > term.map_or(TERM, Duration::from_secs);
        }
        self.seen = Some(Seen { holder, renewed: terms.renew_time.clone(), at: Instant::now() });
        false
    }

    fn sign(&self, lease: &mut Lease) {
        let terms = terms(lease);
        if terms.holder_identity.as_ref() != Some(&self.identity) {
            terms.holder_identity = Some(self.identity.clone());
            terms.acquire_time = Some(now());
            terms.lease_transitions = Some(terms.lease_transitions.unwrap_or_default().saturating_add(1));
        }
        terms.lease_duration_seconds = Some(seconds(TERM));
        terms.renew_time = Some(now());
    }

    /// Gives the lease up, if it is ours.
    pub async fn release(self) {
        self.until.send_replace(None);
        if let Err(error) = self.clear().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the election's lease was not given up");
        }
    }

    async fn clear(&self) -> Result<(), ClusterError> {
        let Some(mut lease) = self.leases.get(ELECTION).await? else { return Ok(()) };
        let terms = terms(&mut lease);
        if terms.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(());
        }
        terms.holder_identity = Some(String::new());
        terms.lease_duration_seconds = Some(1);
        terms.renew_time = Some(now());
        won(self.leases.replace(ELECTION, &lease).await).map(drop)
    }
}

/// A conflict means that another replica was faster, which is no error.
fn won(written: Result<Lease, ClusterError>) -> Result<Option<Lease>, ClusterError> {
    match written {
        Ok(lease) => Ok(Some(lease)),
        Err(error) if error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("identity", &self.identity).finish_non_exhaustive()
    }
}
