use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::AppError;
use crate::config::Config;
use crate::csi::{Controller, Identity, Node, Stock};
use crate::device::Dm;
use crate::exec::{Host, Program, Programs, Runner};
use crate::lvm::{Backend, Groups, LocalBackend, LocalOptions, Settings, watch};
use crate::metrics::{GroupMetrics, MeteredBackend, Metrics};
use crate::proto::csi::v1::controller_server::ControllerServer;
use crate::proto::csi::v1::identity_server::IdentityServer;
use crate::proto::csi::v1::node_server::NodeServer;
use crate::proto::quarry::v1::stock_server::StockServer;
use crate::server::Calls;
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
    /// The machine that this process runs on. LVM's shells live on `tracker`, and `metrics` shows what its
    /// commands cost.
    ///
    /// # Errors
    /// A program is missing, or LVM cannot be asked.
    pub async fn local(config: &Config, tracker: &TaskTracker, metrics: &Metrics) -> Result<Self, AppError> {
        let host = Host::new(Programs::find(&Program::ALL)?);
        let options = LocalOptions {
            run_dir: config.run_directory.join("lvm"),
            locking_dir: config.lvm_locking_directory.clone(),
            backup_dir: config.backup_directory.clone(),
            ..LocalOptions::default()
        };
        let backend =
            LocalBackend::start(host.clone(), tracker.clone(), options).await.map_err(AppError::Lvm)?;
        let backend = metrics.add(|registry| MeteredBackend::new(Arc::new(backend), registry));
        Ok(Self { backend: Arc::new(backend), programs: Arc::new(host) })
    }
}

/// The LVM half of the driver, which is the same in every role that has one.
pub(super) struct Driver {
    groups: Arc<Groups>,
    pub(super) volumes: Arc<Volumes>,
    /// What stands around every call.
    pub(super) calls: Calls,
    background: TaskTracker,
}

impl Driver {
    /// Finds the groups, and takes up what an ended driver left undone.
    pub(super) async fn start(
        config: &Config,
        machine: Machine,
        background: TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let calls = TaskTracker::new();
        let groups = groups(config, machine.backend, &background, stop).await;
        let volumes = volumes(config, &groups, machine.programs, &calls, stop);
        Self { groups, volumes, calls: Calls::new(calls), background }
    }

    /// Lets `metrics` show the calls and the groups.
    pub(super) fn show(&self, metrics: &Metrics) {
        let groups = GroupMetrics::new(Arc::clone(&self.groups), Arc::clone(&self.volumes));
        metrics.add(|registry| {
            self.calls.measure().register(registry);
            registry.register_collector(Box::new(groups));
        });
    }

    /// The Controller service.
    pub(super) fn controller(&self) -> ControllerServer<Controller> {
        ControllerServer::new(Controller::new(Arc::clone(&self.volumes)))
    }

    /// The Stock service.
    pub(super) fn stock(&self) -> StockServer<Stock> {
        StockServer::new(Stock::new(Arc::clone(&self.volumes)))
    }

    /// All three services.
    pub(super) fn routes(&self) -> Routes {
        Routes::new(IdentityServer::new(Identity::new(super::ready)))
            .add_service(self.controller())
            .add_service(NodeServer::new(Node::new(Arc::clone(&self.volumes))))
    }

    /// Waits for what the calls left behind, once they have ended.
    pub(super) async fn end(self) {
        // A caller who does not close his connection holds on to the services, and they to the groups.
        self.groups.rest();
        self.background.close();
        if tokio::time::timeout(FAREWELL, self.background.wait()).await.is_err() {
            tracing::warn!(tasks = self.background.len(), "background work was left undone");
        }
        tracing::info!("stopped");
    }
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
        mount_dir: config.run_directory.join("mounts"),
        tracker: calls.clone(),
        stop: stop.clone(),
    });
    let taker = Arc::clone(&volumes);
    calls.spawn(async move { taker.take_up().await });
    volumes
}
