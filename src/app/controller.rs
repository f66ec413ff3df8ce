use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::{AppError, files};
use crate::cluster::authority::Authority;
use crate::cluster::{
    Cluster, Election, Events, Labels, Leadership, LostGroups, Nodes, Replica, Replicas, Tokens,
};
use crate::config::ControllerConfig;
use crate::csi::Identity;
use crate::link::{Accept, Certificates, Tuning, accept};
use crate::metrics::{FleetMetrics, Metrics};
use crate::proto::csi::v1::controller_server::ControllerServer;
use crate::proto::csi::v1::identity_server::IdentityServer;
use crate::router::{self, Fleet, Keeper, Lost, Orphans, Pace, Parts, Router, TokenReviewer, Waiting};
use crate::server::{self, Calls, Drained, Health, Socket, reachable};

/// How long leases and links may take to end once every call has ended.
const FAREWELL: Duration = Duration::from_secs(10);

/// What the controller is reached at.
#[derive(Debug)]
pub struct Doors {
    /// By the sidecars.
    pub socket: Socket,
    /// By the nodes.
    pub links: TcpListener,
    /// By probes.
    pub health: Health,
}

impl Doors {
    /// Opens them where the configuration says.
    ///
    /// # Errors
    /// Somebody else is there, or the machine has no such address.
    pub async fn open(config: &ControllerConfig) -> Result<Self, AppError> {
        let socket = Socket::bind(&config.endpoint)?;
        let address = reachable(config.link_address);
        let links = TcpListener::bind(address).await;
        let links = links.map_err(|source| AppError::Listen { address, source })?;
        let health = Health::bind(config.health_address).await?;
        Ok(Self { socket, links, health })
    }
}

/// Everything that runs beside the calls.
struct Crew {
    config: ControllerConfig,
    cluster: Cluster,
    tasks: TaskTracker,
    /// Cancelled when the controller is asked to stop: what only a leader does ends.
    shutdown: CancellationToken,
    /// Cancelled when all calls are answered: what they need ends.
    end: CancellationToken,
}

/// Serves the sidecars on the socket and accepts links until `shutdown` is cancelled. Then another replica
/// may lead at once; calls that run are waited for, links are closed, and what this replica has recorded of
/// itself is removed.
///
/// # Errors
/// TLS cannot be set up, or serving failed.
pub async fn controller(
    config: ControllerConfig,
    cluster: Cluster,
    doors: Doors,
    tuning: Tuning,
    pace: Pace,
    shutdown: CancellationToken,
) -> Result<Drained, AppError> {
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    // Whatever way this ends, everything else does too.
    let _ended = end.clone().drop_guard();
    let grace = config.grace_period;
    let crew = Crew { config, cluster, tasks: tasks.clone(), shutdown: shutdown.clone(), end: end.clone() };
    let (calls, fleet) = (Calls::new(TaskTracker::new()), Fleet::new(pace));
    crew.answer_probes(doors.health, &calls, &fleet);
    let routes = crew.start(doors.links, tuning, fleet)?;
    let drained = server::serve(doors.socket, routes, calls, shutdown, grace).await?;
    end.cancel();
    tasks.close();
    if tokio::time::timeout(FAREWELL, tasks.wait()).await.is_err() {
        tracing::warn!(tasks = tasks.len(), "leases or links were left as they are");
    }
    Ok(drained)
}

impl Crew {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Answers probes, and those who want metrics.
    fn answer_probes(&self, health: Health, calls: &Calls, fleet: &Arc<Fleet>) {
        let metrics = Metrics::new("controller");
        metrics.add(|registry| {
            calls.measure().register(registry);
            registry.register_collector(Box::new(FleetMetrics(Arc::clone(fleet))));
        });
        let open = Arc::clone(fleet);
        let (ready, metrics) = (move || open.is_open(), move || metrics.text());
        self.spawn(health.serve(ready, metrics, self.tasks.clone(), self.end.clone()));
    }

    fn start(self, links: TcpListener, tuning: Tuning, fleet: Arc<Fleet>) -> Result<Routes, AppError> {
        let config = &self.config;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            replica = config.pod_name.as_str(),
            namespace = config.namespace,
            endpoint = %config.endpoint,
            links = %links.local_addr().map_err(AppError::Start)?,
            "serving"
        );
        let (election, leadership) = Election::new(&self.cluster, config.pod_name.as_str());
        self.spawn(election.run(self.shutdown.clone()));
        let (nodes, watch) = Nodes::new(&self.cluster, self.end.clone());
        self.spawn(watch);
        let (events, writer) =
            Events::new(&self.cluster, nodes.clone(), config.pod_name.as_str(), self.end.clone());
        self.spawn(writer);

        self.accept(links, &fleet, leadership.clone(), tuning)?;
        let open = Arc::clone(&fleet);
        let identity = Identity::new(move || open.is_open());

        let parts = self.parts(fleet, nodes, events);
        self.lead(&parts, leadership);
        Ok(Routes::new(IdentityServer::new(identity)).add_service(ControllerServer::new(Router::new(parts))))
    }

    /// Accepts links, keeps the certificate that nodes are shown, and records who is linked.
    fn accept(
        &self,
        listener: TcpListener,
        fleet: &Arc<Fleet>,
        leadership: Leadership,
        tuning: Tuning,
    ) -> Result<(), AppError> {
        let config = &self.config;
        let certificates = Certificates::new();
        let authority = Authority::new(&self.cluster, config.authority.clone());
        self.spawn(router::certify(
            authority,
            leadership,
            certificates.clone(),
            Arc::clone(fleet),
            self.end.clone(),
        ));
        let reviewer = Arc::new(TokenReviewer::new(Tokens::new(&self.cluster, &config.node_service_account)));
        let accepted = Accept { listener, certificates, reviewer, tuning };
        let sessions = accept(accepted, &self.tasks, self.end.clone())?;
        self.spawn(router::take_in(Arc::clone(fleet), sessions, self.tasks.clone(), self.end.clone()));
        let replica = Replica::new(&self.cluster, config.pod_name.clone(), config.pod_uid.clone());
        self.spawn(router::census(Arc::clone(fleet), replica, self.end.clone()));
        Ok(())
    }

    fn parts(&self, fleet: Arc<Fleet>, nodes: Nodes, events: Events) -> Parts {
        let (known, identity) = watch::channel(None);
        let identify = router::identify(self.cluster.clone(), known);
        let end = self.end.clone();
        self.spawn(async move {
            end.run_until_cancelled(identify).await;
        });
        let labels = Labels::new(&self.cluster, nodes.clone());
        let lost = Arc::new(Lost::new(LostGroups::new(&self.cluster, &self.config.lost_config_map)));
        Parts { fleet, nodes, labels, lost, events, identity }
    }

    /// What the leader does.
    fn lead(&self, parts: &Parts, leadership: Leadership) {
        let parts = parts.clone();
        let orphans = Orphans {
            fleet: Arc::clone(&parts.fleet),
            cluster: self.cluster.clone(),
            nodes: parts.nodes.clone(),
            leadership: leadership.clone(),
            events: parts.events.clone(),
            collect: self.config.collect_orphans,
        };
        self.spawn(orphans.run(self.shutdown.clone()));
        let waiting = Waiting {
            fleet: Arc::clone(&parts.fleet),
            cluster: self.cluster.clone(),
            nodes: parts.nodes.clone(),
            leadership: leadership.clone(),
            events: parts.events.clone(),
        };
        self.spawn(waiting.run(self.shutdown.clone()));
        let keeper = Keeper {
            fleet: parts.fleet,
            nodes: parts.nodes,
            labels: parts.labels,
            replicas: Replicas::new(&self.cluster),
            leadership,
            lost: parts.lost,
            events: parts.events,
        };
        self.spawn(keeper.run(self.shutdown.clone()));
    }
}

/// Runs a controller as the configuration says.
///
/// # Errors
/// See [`AppError`].
pub(super) async fn run(config: ControllerConfig, shutdown: CancellationToken) -> Result<Drained, AppError> {
    match files::raise() {
        Ok(files) => tracing::info!(files, "as many files may be open: each linked node takes one"),
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised: each linked node takes one")
        }
    }
    let doors = Doors::open(&config).await?;
    let cluster = Cluster::connect(&config.namespace).await?;
    controller(config, cluster, doors, Tuning::default(), Pace::default(), shutdown).await
}
