//! Power: on, off, and on again when a guest has died or hung, which is no fault of what runs in it.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lab::{Job, Running, Streams};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::Node;
use super::watch::Clock;
use crate::agent::{PORT, Service};
use crate::program::last_lines;
use crate::{Error, say};

/// How long a guest may live: longer than anybody looks at a cluster.
pub(super) const LIFE: Duration = Duration::from_secs(48 * 3600);
/// How long a node may take from power on until its agent answers. Seconds are usual; a busy host needs more.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
/// How often a node is started that dies or hangs in its start.
const TRIES: u32 = 3;
const CUT_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// The state of a node's power.
#[derive(Debug, Default)]
pub(super) struct Power {
    guest: Mutex<Option<Arc<Running>>>,
    /// Held by whoever turns it on or off.
    turn: tokio::sync::Mutex<()>,
    outages: AtomicU32,
}

impl Power {
    fn set(&self, guest: Option<Arc<Running>>) -> Option<Arc<Running>> {
        std::mem::replace(&mut *self.guest.lock().unwrap_or_else(PoisonError::into_inner), guest)
    }
}

impl Node {
    /// How often the node's guest has died or hung by itself and was started again.
    pub fn outages(&self) -> u32 {
        self.power.outages.load(Ordering::Relaxed)
    }

    /// The guest, if the power is on.
    pub(super) fn guest(&self) -> Option<Arc<Running>> {
        self.power.guest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Turns the power on, and returns when the node's services run. It is not `Ready` then: see
    /// [`crate::Cluster::node_ready`].
    ///
    /// # Errors
    ///
    /// When the node does not start.
    pub async fn start(&self) -> Result<(), Error> {
        self.boot().await?;
        self.start_services().await
    }

    /// Turns the power on, and returns when containerd runs.
    pub(crate) async fn boot(&self) -> Result<(), Error> {
        let _turn = self.power.turn.lock().await;
        match self.guest() {
            Some(_) => Ok(()),
            None => self.boot_in_turn().await,
        }
    }

    /// Starts what needs the API server.
    pub(crate) async fn start_services(&self) -> Result<(), Error> {
        self.start_service(Service::KubeProxy).await?;
        self.start_service(Service::Kubelet).await
    }

    /// Cuts the node's power: what its kernel has not written to its disks is lost.
    ///
    /// # Errors
    ///
    /// When the guest does not end.
    pub async fn cut_power(&self) -> Result<(), Error> {
        let _turn = self.power.turn.lock().await;
        self.cut_in_turn().await
    }

    /// Starts the node again if it is still this guest that runs: one that is dead or hangs.
    pub(super) async fn recover(&self, guest: &Arc<Running>, why: &str) -> Result<(), Error> {
        let _turn = self.power.turn.lock().await;
        if !self.guest().is_some_and(|current| Arc::ptr_eq(&current, guest)) {
            return Ok(());
        }
        self.count_outage(why, guest);
        self.cut_in_turn().await?;
        self.boot_in_turn().await?;
        self.start_services().await
    }

    fn count_outage(&self, why: &str, guest: &Running) {
        let count = self.power.outages.fetch_add(1, Ordering::Relaxed) + 1;
        say(&format!(
            "{} {why} (outage {count}) and is started again; its kernel's last words:",
            self.name()
        ));
        say(&guest.kernel_log());
    }

    async fn boot_in_turn(&self) -> Result<(), Error> {
        let mut tries = 1;
        loop {
            let guest = self.power_on().await?;
            self.power.set(Some(guest.clone()));
            match self.wait_for_agent(&guest).await {
                Ok(()) => return Ok(()),
                Err(Silence::Fault(error)) => return Err(error),
                Err(Silence::Outage(why)) if tries == TRIES => {
                    return Err(Error::other(format!("{} {why}: {}", self.name(), self.last_words(&guest))));
                }
                Err(Silence::Outage(why)) => self.count_outage(&why, &guest),
            }
            drop(guest);
            self.cut_in_turn().await?;
            tries += 1;
        }
    }

    async fn power_on(&self) -> Result<Arc<Running>, Error> {
        let job = Job::new([self.program.as_os_str(), "serve-node".as_ref(), self.order_file.as_os_str()])?;
        let machine = self.machine.clone();
        let running = spawn_blocking(move || machine.start(job, Streams::Capture));
        Ok(Arc::new(running.await.map_err(Error::other)??))
    }

    async fn cut_in_turn(&self) -> Result<(), Error> {
        let Some(guest) = self.power.set(None) else { return Ok(()) };
        if !guest.has_ended() {
            guest.cut_power()?;
        }
        let deadline = Instant::now() + CUT_LIMIT;
        while !guest.has_ended() {
            if Instant::now() > deadline {
                let what = format!("{} to be off", self.name());
                return Err(Error::Late { what, limit: CUT_LIMIT, seen: "it runs".to_owned() });
            }
            sleep(PAUSE).await;
        }
        // The last one to let go of it waits for its supervisor, which is about to end.
        spawn_blocking(move || drop(guest)).await.map_err(Error::other)
    }

    /// Waits until the node has prepared itself and takes requests.
    async fn wait_for_agent(&self, guest: &Arc<Running>) -> Result<(), Silence> {
        let deadline = Instant::now() + BOOT_LIMIT;
        let mut clock = Clock::new();
        loop {
            if is_open(self.order.address).await {
                return Ok(());
            }
            if guest.has_ended() {
                return Err(Silence::Outage("ended in its start".to_owned()));
            }
            if clock.has_stopped(guest).await {
                return Err(Silence::Outage("hung in its start".to_owned()));
            }
            if Instant::now() > deadline {
                let what = format!("{} to take requests", self.name());
                let seen = self.last_words(guest);
                return Err(Silence::Fault(Error::Late { what, limit: BOOT_LIMIT, seen }));
            }
            sleep(PAUSE).await;
        }
    }

    /// The last lines of the guest's log and of its kernel's.
    fn last_words(&self, guest: &Running) -> String {
        let log = self.order.folder.join(crate::guest::LOG);
        format!("{}\nkernel:\n{}", last_lines(&log), guest.kernel_log())
    }
}

/// Why a node's agent does not answer.
enum Silence {
    /// The guest died or hung.
    Outage(String),
    /// The guest is well, the node is not.
    Fault(Error),
}

async fn is_open(address: Ipv4Addr) -> bool {
    matches!(timeout(CONNECT_LIMIT, TcpStream::connect((address, PORT))).await, Ok(Ok(_)))
}
