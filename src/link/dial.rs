use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backoff::Backoff;
use super::hello::{Greeting, HelloError, Welcomed};
use super::serve::serve;
use super::{Controllers, Services, TokenFile, Tuning};
use crate::types::{NodeName, chain};

/// What a node's links are made of.
pub struct Dial {
    /// Where its controllers are.
    pub controllers: Controllers,
    /// The node, as its settings name it. The controllers must know it under the same name.
    pub node: NodeName,
    /// The directory with the CA's certificates, `ca.crt`. It is read at each hello, and need not be
    /// there yet.
    pub ca: PathBuf,
    /// The token that says which node this is. It is read at each hello.
    pub token: TokenFile,
    /// What the controllers may call.
    pub services: Services,
    /// Times and bounds.
    pub tuning: Tuning,
}

/// Keeps one link to each of the node's controllers. When `stop` is cancelled no more calls are taken; it
/// returns when those that run are answered and all links are closed.
pub async fn dial(dial: Dial, stop: CancellationToken) {
    let (wanted, _) = watch::channel(BTreeSet::new());
    let dialler = Arc::new(Dialler { dial, wanted, lost: Notify::new(), tracker: TaskTracker::new(), stop });
    dialler.stop.run_until_cancelled(Arc::clone(&dialler).follow()).await;
    dialler.tracker.close();
    dialler.tracker.wait().await;
}

struct Dialler {
    dial: Dial,
    /// The addresses at which there are controllers, as far as is known.
    wanted: watch::Sender<BTreeSet<SocketAddr>>,
    /// A link was lost: its controller may be at another address now.
    lost: Notify,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Dialler {
    /// Follows the controllers' addresses, and sees to it that each is dialled.
    async fn follow(self: Arc<Self>) {
        let tuning = &self.dial.tuning;
        let mut links: BTreeMap<SocketAddr, JoinHandle<()>> = BTreeMap::new();
        let mut soon = Backoff::new(tuning.backoff_least, tuning.lookup);
        let mut said = Said::default();
        loop {
            match self.dial.controllers.addresses().await {
                Ok(addresses) => {
                    said.forget();
                    self.update(&mut links, addresses);
                }
                Err(error) => said.once(
                    &chain(&error),
                    |why| tracing::warn!(controllers = %self.dial.controllers, why, "cannot look up the controllers"),
                ),
            }
            if self.wanted.borrow().is_empty() {
                sleep(soon.wait()).await;
                continue;
            }
            tokio::select! {
                () = sleep(tuning.lookup) => soon.reset(),
                () = self.lost.notified() => sleep(soon.wait()).await,
            }
        }
    }

    fn update(
        self: &Arc<Self>,
        links: &mut BTreeMap<SocketAddr, JoinHandle<()>>,
        addresses: BTreeSet<SocketAddr>,
    ) {
        self.wanted.send_replace(addresses.clone());
        links.retain(|_, link| !link.is_finished());
        for address in addresses {
            links.entry(address).or_insert_with(|| self.tracker.spawn(Arc::clone(self).keep(address)));
        }
    }

    /// Keeps a link to the controller at one address, for as long as it is one of theirs. An address that
    /// is not in the DNS any more keeps its link until that is lost.
    async fn keep(self: Arc<Self>, address: SocketAddr) {
        let tuning = &self.dial.tuning;
        let mut backoff = Backoff::new(tuning.backoff_least, tuning.backoff_most);
        let mut wanted = self.wanted.subscribe();
        let mut said = Said::default();
        while wanted.borrow_and_update().contains(&address) && !self.stop.is_cancelled() {
            let started = Instant::now();
            let Dial { node, ca, token, .. } = &self.dial;
            let greeting = Greeting { node, ca, token, tuning };
            match self.stop.run_until_cancelled(greeting.say_to(address)).await {
                None => return,
                Some(Ok(welcomed)) => {
                    said.forget();
                    self.serve(address, welcomed).await;
                    self.lost.notify_one();
                }
                Some(Err(error)) => said.once(&chain(&error), |why| complain(address, &error, why)),
            }
            // A link that was lost at once is no success: two pods of one node would take it from each other
            // without a pause.
            if started.elapsed() > tuning.backoff_most {
                backoff.reset();
            }
            let unwanted = wanted.wait_for(|wanted| !wanted.contains(&address));
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(backoff.wait()) => {}
                _ = unwanted => {}
            }
        }
    }

    async fn serve(&self, address: SocketAddr, welcomed: Welcomed) {
        let Welcomed { stream, version, driver_version } = welcomed;
        tracing::info!(controller = %address, version, driver = driver_version, "linked to a controller");
        let services = self.dial.services.clone();
        let ended = serve(stream, services, &self.dial.tuning, &self.tracker, &self.stop).await;
        let error = ended.err().map(|error| chain(&error));
        if self.stop.is_cancelled() {
            tracing::info!(controller = %address, error, "closed the link");
        } else {
            tracing::warn!(controller = %address, error, "the link to a controller is lost");
        }
    }
}

/// What is still being set up, or passes by itself, is no warning.
fn complain(address: SocketAddr, error: &HelloError, why: &str) {
    match error {
        HelloError::Roots(_) | HelloError::Connect(_) => {
            tracing::info!(controller = %address, why, "no link yet");
        }
        HelloError::Token(_)
        | HelloError::Tls(_)
        | HelloError::Broken(_)
        | HelloError::Late
        | HelloError::Refused(_)
        | HelloError::Misnamed { .. }
        | HelloError::Version(_) => tracing::warn!(controller = %address, why, "no link"),
    }
}

/// The trouble that was last told: it is told once, not at every attempt.
#[derive(Default)]
struct Said(Option<String>);

impl Said {
    fn once(&mut self, why: &str, tell: impl FnOnce(&str)) {
        if self.0.as_deref() != Some(why) {
            tell(why);
            self.0 = Some(why.to_owned());
        }
    }

    fn forget(&mut self) {
        self.0 = None;
    }
}
