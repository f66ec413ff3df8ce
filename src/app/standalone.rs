use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::AppError;
use crate::config::Config;
use crate::csi::{Controller, Identity, Node};
use crate::device::Dm;
use crate::exec::{Host, Programs, Runner};

use crate::lvm::{Backend, Groups, LocalBackend, LocalOptions, Settings, watch};
use crate::proto::csi::v1::controller_server::ControllerServer;
use crate::proto::csi::v1::identity_server::IdentityServer;
use crate::proto::csi::v1::node_server::NodeServer;
use crate::server::{self, Calls, Drained, Socket};
use crate::types::chain;
use crate::volume::{Parts, Volumes};

/// How long changes are gathered before the metadata is backed up.
const BACKUP_DELAY: Duration = Duration::from_secs(2);

/// How long shells and backups may take to end once every call has ended.
const FAREWELL: Duration = Duration::from_secs(10);

/// What the driver needs of its machine.
pub struct Machine {
    /// The volume groups.
    pub backend: Arc<dyn Backend>,
    /// What runs programs.
    pub programs: Arc<dyn Runner>,
}

impl Machine {
    /// The machine that this process runs on. LVM's shells live on `tracker`.
    ///
    /// # Errors
    /// A program is missing, or LVM cannot be asked.
    pub async fn local(config: &Config, tracker: &TaskTracker) -> Result<Self, AppError> {
        let host = Host::new(Programs::find()?);
        let options = LocalOptions {
            run_dir: config.run_directory.join("lvm"),
            locking_dir: config.lvm_locking_directory.clone(),
            backup_dir: config.backup_directory.clone(),
            ..LocalOptions::default()
        };
        let backend =
            LocalBackend::start(host.clone(), tracker.clone(), options).await.map_err(AppError::Lvm)?;
        Ok(Self { backend: Arc::new(backend), programs: Arc::new(host) })
    }
}

/// Serves all three services on `socket` until `shutdown` is cancelled, and waits for what runs:
/// first for the calls, then for what they left behind.
///
/// # Errors
/// Serving failed.
pub async fn standalone(
    config: Config,
    socket: Socket,
    machine: Machine,
    background: TaskTracker,
    shutdown: CancellationToken,
) -> Result<Drained, AppError> {
    let calls = TaskTracker::new();
    let groups = groups(&config, machine.backend, &background, &shutdown).await;
    let volumes = volumes(&config, &groups, machine.programs, &calls, &shutdown);
    let routes = Routes::new(IdentityServer::new(Identity::new(|| true)))
        .add_service(ControllerServer::new(Controller::new(Arc::clone(&volumes))))
        .add_service(NodeServer::new(Node::new(volumes)));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        node = %config.node_name,
        endpoint = %config.endpoint,
        "serving"
    );
    let drained = server::serve(socket, routes, Calls::new(calls), shutdown, config.grace_period).await?;
    // A caller who does not close his connection holds on to the services, and they to the groups.
    groups.rest();
    background.close();
    if tokio::time::timeout(FAREWELL, background.wait()).await.is_err() {
        tracing::warn!(tasks = background.len(), "background work was left undone");
    }
    tracing::info!("stopped");
    Ok(drained)
}

/// The groups that are there, and a watch for those that come.
async fn groups(
    config: &Config,
    backend: Arc<dyn Backend>,
    background: &TaskTracker,
    stop: &CancellationToken,
) -> Arc<Groups> {
    let settings = Settings {
        selections: config.volume_groups.clone(),
        patience: config.lvm_patience,
        backup_delay: BACKUP_DELAY,
    };
    let groups = Groups::new(backend, settings, background.clone(), stop.clone());
    match groups.rescan().await {
        Err(error) => tracing::error!(error = chain(&error), "no volume group is known: looking again soon"),
        Ok(()) if groups.names().is_empty() => {
            let wanted: Vec<_> = config.volume_groups.iter().map(|group| group.pattern.to_string()).collect();
            tracing::warn!(?wanted, "none of these volume groups is on this machine now: waiting for one");
        }
        Ok(()) => {}
    }
    let lock_dir = config.lvm_locking_directory.clone();
    background.spawn(watch(Arc::clone(&groups), lock_dir, stop.clone()));
    groups
}

/// The verbs, on these groups. What an ended driver left undone is taken up.
fn volumes(
    config: &Config,
    groups: &Arc<Groups>,
    programs: Arc<dyn Runner>,
    calls: &TaskTracker,
    stop: &CancellationToken,
) -> Arc<Volumes> {
    let volumes = Volumes::new(Parts {
        groups: Arc::clone(groups),
        programs,
        dm: Dm::new(config.run_directory.join("nodes")),
        node: config.node_name.clone(),
        lock_dir: config.run_directory.join("volumes"),
        tracker: calls.clone(),
        stop: stop.clone(),
    });
    let taker = Arc::clone(&volumes);
    calls.spawn(async move { taker.take_up().await });
    volumes
}
