use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use quarry::cluster::vg_label;
use quarry::link::{Agent, Controllers, Dial, StateFeed, TokenFile, Tuning, dial};
use quarry::proto::csi::v1 as csi;
use quarry::proto::csi::v1::controller_server::ControllerServer;
use quarry::proto::quarry::v1::agent_server::AgentServer;
use quarry::server::Calls;
use quarry::types::{Bytes, GroupState, VgUuid};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tower::Layer as _;

use super::controller::soon;
use crate::router::{ApiServer, bundle, token};

/// Longer than any measurement.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The group that each of them has, by name.
pub(super) const VG: &str = "vg0";

/// What is known of one of the nodes.
pub(super) struct Simulated {
    /// As clouds name them.
    pub(super) name: String,
    pub(super) vg: VgUuid,
}

impl Simulated {
    fn of(number: usize) -> Self {
        let [high, low] = [number / 256, number % 256];
        Self {
            name: format!("ip-10-17-{high}-{low}.eu-central-1.compute.internal"),
            vg: format!("{number:06}-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4").parse().unwrap(),
        }
    }
}

/// The nodes of a cluster, all in this process.
pub(super) struct Nodes {
    all: Vec<Simulated>,
    stop: CancellationToken,
    running: TaskTracker,
    _mounts: tempfile::TempDir,
    _stopped_at_the_end: DropGuard,
}

impl Nodes {
    /// Starts them one after another. They are nodes that the cluster has had for long: their labels are there.
    pub(super) async fn start(
        server: &ApiServer,
        controller: SocketAddr,
        count: usize,
        within: Duration,
    ) -> Self {
        let mounts = tempfile::tempdir().unwrap();
        std::fs::write(mounts.path().join("ca.crt"), bundle(server)).unwrap();
        let (stop, running) = (CancellationToken::new(), TaskTracker::new());
        let _stopped_at_the_end = stop.clone().drop_guard();
        let all: Vec<Simulated> = (0..count).map(Simulated::of).collect();
        for node in &all {
            server.put_node(&node.name, json!({ vg_label(&node.vg): "true" }));
        }
        let mut pace = tokio::time::interval(within / u32::try_from(count).unwrap());
        for (number, node) in (0..).zip(&all) {
            pace.tick().await;
            let token_file = mounts.path().join(format!("token-{number}"));
            std::fs::write(&token_file, token(server, &node.name, number, DAY)).unwrap();
            run(node, controller, (mounts.path(), &token_file), &running, &stop);
        }
        Self { all, stop, running, _mounts: mounts, _stopped_at_the_end }
    }

    pub(super) fn all(&self) -> &[Simulated] {
        &self.all
    }

    /// Ends all of them.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.running.close();
        soon("the nodes' end", self.running.wait()).await;
    }
}

/// A node as [`quarry::app::node`] makes it, with a group that never changes and calls that do nothing.
fn run(
    node: &Simulated,
    controller: SocketAddr,
    (ca, token_file): (&Path, &Path),
    running: &TaskTracker,
    stop: &CancellationToken,
) {
    let room = Bytes::mib(64 << 10);
    let name = VG.parse().unwrap();
    let group = GroupState { uuid: node.vg.clone(), name, trouble: None, available: room, maximum: room };
    let (tuning, token) = (Tuning::default(), TokenFile::new(token_file.to_owned()));
    let unchanged = watch::channel(0).1;
    let read = move || vec![group.clone()];
    let feed = StateFeed::start(read, unchanged, tuning.heartbeat, running, stop.clone());
    let agent = AgentServer::new(Agent::new(feed.clone(), token.clone()));
    let routes = Routes::new(ControllerServer::new(Answers)).add_service(agent);
    let dial = dial(
        Dial {
            controllers: Controllers::Fixed([controller].into()),
            node: node.name.parse().unwrap(),
            ca: ca.to_owned(),
            token,
            services: Calls::new(running.clone()).wrap(feed.stamp().layer(routes)),
            tuning,
        },
        stop.clone(),
    );
    running.spawn(dial);
}

/// A Controller service that has nothing to do.
#[derive(Clone)]
struct Answers;

#[tonic::async_trait]
impl csi::controller_server::Controller for Answers {
    async fn delete_volume(
        &self,
        _: Request<csi::DeleteVolumeRequest>,
    ) -> Result<Response<csi::DeleteVolumeResponse>, Status> {
        Ok(Response::new(csi::DeleteVolumeResponse {}))
    }
}
