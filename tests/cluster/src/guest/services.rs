//! The node's services: started, started again when they end unasked, and ended when a test wants it.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::{Order, config, prepare};
use crate::agent::Action;
use crate::program::{command, open_log};
use crate::{Error, Service};

/// How long a service may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(15);
/// How long to wait before a service that ended unasked is started again.
const REST: Duration = Duration::from_secs(1);
/// How long containerd may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);

/// All services of this node.
#[derive(Debug, Clone)]
pub(super) struct Services {
    keepers: Arc<[(Service, mpsc::Sender<Change>)]>,
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
            let keeper = Keeper {
                service,
                command: Keeper::command(service, order),
                log: log(service, order),
                child: None,
            };
            #[expect(clippy::disallowed_methods, reason = "it keeps its service until the guest ends")]
            tokio::spawn(keeper.serve(changes));
            (service, sender)
        });
        Services { keepers: Arc::new(keepers) }
    }

    /// Does something to a service, and returns when it has been done.
    pub(super) async fn change(&self, service: Service, action: Action) -> Result<(), Error> {
        let gone = || Error::other(format!("nobody looks after {}", service.name()));
        let (_, keeper) = self.keepers.iter().find(|(name, _)| *name == service).ok_or_else(gone)?;
        let (done, answer) = oneshot::channel();
        keeper.send(Change { action, done }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())??;
        if (service, action) == (Service::Containerd, Action::Start) {
            wait_for_containerd().await?;
        }
        Ok(())
    }
}

fn log(service: Service, order: &Order) -> PathBuf {
    order.folder.join(format!("{}.log", service.name()))
}

/// Looks after one service.
#[derive(Debug)]
struct Keeper {
    service: Service,
    command: Command,
    log: PathBuf,
    child: Option<Child>,
}

impl Keeper {
    fn command(service: Service, order: &Order) -> Command {
        let mut command = daemon(&order.bin.join(service.name()), &order.bin);
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

    async fn serve(mut self, mut changes: mpsc::Receiver<Change>) {
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    // Whoever asked may have gone; it is done all the same.
                    Some(Change { action, done }) => drop(done.send(self.act(action).await)),
                    None => return,
                },
                status = ended(&mut self.child) => self.start_again(status).await,
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), Error> {
        match action {
            Action::Start if self.child.is_some() => Ok(()),
            Action::Start => self.start(),
            Action::Stop => self.end(Signal::SIGTERM).await,
            Action::Kill => self.end(Signal::SIGKILL).await,
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        let file = open_log(&self.log)?;
        let same = file.try_clone().map_err(Error::at("open", &self.log))?;
        let child = self.command.stdout(file).stderr(same).spawn();
        self.child =
            Some(child.map_err(|source| Error::Start { program: self.service.name().into(), source })?);
        Ok(())
    }

    async fn end(&mut self, signal: Signal) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended by itself, which is as well.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        if timeout(GRACE, child.wait()).await.is_err() {
            child.kill().await.map_err(Error::io(format!("kill {}", self.service.name())))?;
        }
        Ok(())
    }

    /// As systemd would: after a short rest, and again as often as it takes.
    async fn start_again(&mut self, status: Option<ExitStatus>) {
        self.child = None;
        let status = status.map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
        crate::say(&format!("{} ended unasked ({status}) and is started again", self.service.name()));
        sleep(REST).await;
        if let Err(error) = self.start() {
            crate::say(&error.chain());
        }
    }
}

/// Waits for the end of a child; for ever if there is none.
async fn ended(child: &mut Option<Child>) -> Option<ExitStatus> {
    match child {
        Some(child) => child.wait().await.ok(),
        None => std::future::pending().await,
    }
}

/// A program of the node, with the surroundings that it needs.
pub(super) fn daemon(program: &Path, bin: &Path) -> Command {
    let path = [prepare::programs().as_path(), bin].map(|folder| folder.display().to_string()).join(":");
    let mut command = command(program);
    command
        .env("PATH", format!("{path}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
        // Go interrupts its own threads by signals, which are slow in a guest.
        .env("GODEBUG", "asyncpreemptoff=1");
    command
}

/// Waits until containerd takes requests: it opens its socket when all its parts are ready.
pub(super) async fn wait_for_containerd() -> Result<(), Error> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        match UnixStream::connect(config::CONTAINERD).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                let what = "containerd to open its socket".to_owned();
                return Err(Error::Late { what, limit: START_LIMIT, seen: error.to_string() });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
