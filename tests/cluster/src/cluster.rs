//! A cluster from its start to its end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::control_plane::ControlPlane;
use crate::credentials::Authority;
use crate::node::{self, Node};
use crate::options::Options;
use crate::paths::{self, Paths};
use crate::progress::Phases;
use crate::space::Space;
use crate::{Error, Service, network, wait};

/// How long a node may take from the start of its kubelet until it is ready.
const READY_LIMIT: Duration = Duration::from_secs(180);

/// A running cluster. Dropping it ends it.
pub struct Cluster {
    client: Client,
    nodes: Vec<Arc<Node>>,
    control_plane: Mutex<ControlPlane>,
    phases: Phases,
    _watches: JoinSet<()>,
}

impl Cluster {
    /// Brings a cluster up, and returns when all its nodes are ready. `disk` is what [`crate::images::prepare`] has made.
    ///
    /// The network is made in the namespace that this process is in, which must be one of its own: a scenario has all
    /// this done for it.
    ///
    /// # Errors
    ///
    /// When a part does not come up in time; the message says which.
    pub(crate) async fn up(paths: &Paths, disk: &Path, options: &Options) -> Result<Cluster, Error> {
        let start = Instant::now();
        let count = options.count()?;
        let mut phases = Phases::default();
        let authority = phases.time("network and certificates", found(paths, count)).await?;
        let creation = create_nodes(paths, &authority, disk, options, count);
        let nodes = phases.time("disks", creation).await?;

        let (mut api_time, mut boot_time) = (Duration::ZERO, Duration::ZERO);
        let ((control_plane, client), ()) = tokio::try_join!(
            timed(&mut api_time, ControlPlane::start(paths, &authority)),
            timed(&mut boot_time, boot(&nodes)),
        )?;
        phases.add("control plane", api_time);
        phases.add("guests with containerd, side by side with it", boot_time);

        let mut watches = JoinSet::new();
        for node in &nodes {
            watches.spawn(node::watch(node.clone()));
        }
        let cluster =
            Cluster { client, nodes, control_plane: Mutex::new(control_plane), phases, _watches: watches };
        cluster.finish(paths, options, start).await
    }

    async fn finish(mut self, paths: &Paths, options: &Options, start: Instant) -> Result<Cluster, Error> {
        let mut phases = std::mem::take(&mut self.phases);
        phases.time("nodes ready", self.ready_nodes()).await?;
        if !options.images.is_empty() {
            phases.time("further images", self.import(options)).await?;
        }
        if let Some(image) = &options.driver {
            phases.time("the driver", self.install(paths, image)).await?;
        }
        phases.add("in all", start.elapsed());
        self.phases = phases;
        Ok(self)
    }

    async fn ready_nodes(&self) -> Result<(), Error> {
        let one = async |node: &Arc<Node>| {
            node.start_services().await?;
            self.node_ready(node.name(), READY_LIMIT).await
        };
        try_join_all(self.nodes.iter().map(one)).await.map(drop)
    }

    async fn import(&self, options: &Options) -> Result<(), Error> {
        let one = async |node: &Arc<Node>| {
            for archive in &options.images {
                node.import(archive).await?;
            }
            Ok(())
        };
        try_join_all(self.nodes.iter().map(one)).await.map(drop)
    }

    /// A client for the API server, with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The node of this name.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] when there is none.
    pub fn node(&self, name: &str) -> Result<&Arc<Node>, Error> {
        let found = self.nodes.iter().find(|node| node.name() == name);
        found.ok_or_else(|| Error::other(format!("there is no node {name}")))
    }

    /// Makes a namespace of Kubernetes for a scenario's objects.
    ///
    /// # Errors
    ///
    /// When it is there already.
    pub async fn space(&self, name: &str) -> Result<Space, Error> {
        Space::create(self.client(), name).await
    }

    /// Waits until Kubernetes says that a node is ready, since its last start: what it said before does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] with the node's status.
    pub async fn node_ready(&self, name: &str, limit: Duration) -> Result<(), Error> {
        let boot = self.node(name)?.boot_id().await?;
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client());
        let is_ready = |node: Option<&_>| wait::is_node_ready(node) && wait::is_boot(node, &boot);
        wait::until(&api, name, &format!("{name} to be ready"), limit, is_ready).await.map(drop)
    }

    /// Loses all objects of Kubernetes, as when etcd's disk is lost: the control plane starts anew with an empty etcd and
    /// the keys that it had, and the nodes join it as they are. Returns when they are ready.
    ///
    /// # Errors
    ///
    /// When the control plane does not start, or a node is not ready in time.
    pub(crate) async fn lose_objects(&self) -> Result<(), Error> {
        self.control_plane.lock().await.lose_objects(&self.client).await?;
        let one = async |node: &Arc<Node>| {
            // What has run till now goes on watching from a time that the new etcd has not come to, and sees nothing.
            node.restart_service(Service::KubeProxy).await?;
            node.restart_service(Service::Kubelet).await?;
            self.node_ready(node.name(), READY_LIMIT).await
        };
        try_join_all(self.nodes.iter().map(one)).await.map(drop)
    }

    /// Fails when a part of the control plane has ended by itself, with its last words.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] for the part that has.
    pub async fn check(&self) -> Result<(), Error> {
        self.control_plane.lock().await.check()
    }

    /// How often guests have died or hung by themselves, and were started again.
    pub fn outages(&self) -> u32 {
        self.nodes.iter().map(|node| node.outages()).sum()
    }

    /// How long each part of its start took.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }
}

/// The files and the network that all parts need.
async fn found(paths: &Paths, count: u8) -> Result<Authority, Error> {
    let authority = Authority::create(paths.run())?;
    authority.kubeconfig("admin", "admin", Some("system:masters"))?;
    paths::make_folder(&paths.logs())?;
    network::set_up(count).await?;
    Ok(authority)
}

async fn create_nodes(
    paths: &Paths,
    authority: &Authority,
    disk: &Path,
    options: &Options,
    count: u8,
) -> Result<Vec<Arc<Node>>, Error> {
    let one = async |(number, options)| {
        Node::create(paths, authority, disk, options, (number, count)).await.map(Arc::new)
    };
    try_join_all((1..).zip(&options.nodes).map(one)).await
}

async fn boot(nodes: &[Arc<Node>]) -> Result<(), Error> {
    try_join_all(nodes.iter().map(|node| node.boot())).await.map(drop)
}

async fn timed<T>(time: &mut Duration, part: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let result = part.await;
    *time = start.elapsed();
    result
}
