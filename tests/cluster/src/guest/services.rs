//! The node's services: started, started again when they end unasked, and ended when a test wants it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::net::{TcpStream, UnixStream};
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use super::{Order, config, prepare};
use crate::agent::Action;
use crate::program::{Daemon, command};
use crate::{Error, Service, say};

/// How long to wait before a service that ended unasked is started again.
const REST: Duration = Duration::from_secs(1);
/// How long a service may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);

/// All services of this node.
#[derive(Debug, Clone)]
pub(super) struct Services {
    keepers: Arc<[(Service, mpsc::Sender<Change>)]>,
    /// The node's own.
    address: Ipv4Addr,
}

/// Something to do, and where to say that it has been done.
#[derive(Debug)]
struct Change {
    action: Action,
    done: oneshot::Sender<Result<(), Error>>,
}

impl Services {
    /// None of them runs yet.
    pub(super) fn new(order: &Order) -> Services {
        let all = [Service::Containerd, Service::KubeProxy, Service::Kubelet];
        let keepers = all.map(|service| {
            let (sender, changes) = mpsc::channel(1);
            let log = order.folder.join(format!("{}.log", service.name()));
            let keeper = Keeper { service, command: service_command(service, order), log, daemon: None };
            #[expect(clippy::disallowed_methods, reason = "it keeps its service until the guest ends")]
            tokio::spawn(keeper.serve(changes));
            (service, sender)
        });
        Services { keepers: Arc::new(keepers), address: order.address }
    }

    /// Does something to a service, and returns when it has been done: one that was started takes requests then.
    pub(super) async fn change(&self, service: Service, action: Action) -> Result<(), Error> {
        let gone = || Error::other(format!("nobody looks after {}", service.name()));
        let (_, keeper) = self.keepers.iter().find(|(name, _)| *name == service).ok_or_else(gone)?;
        let (done, answer) = oneshot::channel();
        keeper.send(Change { action, done }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())??;
        match (action, service) {
            (Action::Start, Service::Containerd) => wait_for_containerd().await,
            (Action::Start, Service::Kubelet) => {
                let port = (self.address, config::KUBELET_PORT);
                opens("the kubelet", || TcpStream::connect(port)).await
            }
            _ => Ok(()),
        }
    }
}

/// Looks after one service.
#[derive(Debug)]
struct Keeper {
    service: Service,
    command: Command,
    log: PathBuf,
    daemon: Option<Daemon>,
}

impl Keeper {
    async fn serve(mut self, mut changes: mpsc::Receiver<Change>) {
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    // Whoever asked may have gone; it is done all the same.
                    Some(Change { action, done }) => drop(done.send(self.act(action).await)),
                    None => return,
                },
                status = ended(&mut self.daemon) => self.start_again(status).await,
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), Error> {
        let signal = match action {
            Action::Start if self.daemon.is_some() => return Ok(()),
            Action::Start => return self.start(),
            Action::Stop => Signal::SIGTERM,
            Action::Kill => Signal::SIGKILL,
        };
        match self.daemon.take() {
            Some(daemon) => daemon.end(signal).await,
            None => Ok(()),
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        self.daemon = Some(Daemon::start(&mut self.command, self.log.clone())?);
        Ok(())
    }

    /// As systemd would: after a short rest, and again as often as it takes.
    async fn start_again(&mut self, status: Option<ExitStatus>) {
        self.daemon = None;
        let status = status.map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
        say(&format!("{} ended unasked ({status}) and is started again", self.service.name()));
        sleep(REST).await;
        if let Err(error) = self.start() {
            say(&error.chain());
        }
    }
}

/// Waits for the end of a daemon; for ever if there is none.
async fn ended(daemon: &mut Option<Daemon>) -> Option<ExitStatus> {
    match daemon {
        Some(daemon) => daemon.ended().await,
        None => std::future::pending().await,
    }
}

fn service_command(service: Service, order: &Order) -> Command {
    let mut command = node_command(service.name(), &order.bin);
    match service {
        Service::Containerd => {}
        Service::Kubelet => {
            command
                .arg("--config")
                .arg(config::kubelet_config())
                .arg("--kubeconfig")
                .arg(&order.credentials.kubelet)
                .arg(format!("--hostname-override={}", order.name))
                .arg(format!("--node-ip={}", order.address));
        }
        Service::KubeProxy => {
            command
                .arg("--kubeconfig")
                .arg(&order.credentials.kube_proxy)
                .arg(format!("--hostname-override={}", order.name))
                .arg(format!("--cluster-cidr={}", order.cluster_subnet))
                .args(["--proxy-mode=iptables", "--conntrack-max-per-core=0"]);
        }
    }
    command
}

/// A program of the node, with the surroundings that it needs.
pub(super) fn node_command(name: &str, bin: &Path) -> Command {
    let path = [prepare::programs().as_path(), bin].map(|folder| folder.display().to_string()).join(":");
    let mut command = command(bin.join(name));
    command
        .env("PATH", format!("{path}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
        // Go interrupts its own threads by signals, which are slow in a guest.
        .env("GODEBUG", "asyncpreemptoff=1");
    command
}

/// Waits until containerd takes requests: it opens its socket when all its parts are ready.
pub(super) async fn wait_for_containerd() -> Result<(), Error> {
    opens("containerd", || UnixStream::connect(config::CONTAINERD)).await
}

async fn opens<T, F>(name: &str, connect: impl Fn() -> F) -> Result<(), Error>
where
    F: Future<Output = std::io::Result<T>>,
{
    let deadline = Instant::now() + START_LIMIT;
    loop {
        match connect().await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                let what = format!("{name} to take requests");
                return Err(Error::Late { what, limit: START_LIMIT, seen: error.to_string() });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
