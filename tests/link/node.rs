use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use quarry::link::{Agent, Controllers, Dial, StateFeed, TokenFile, Tuning, dial};
use quarry::proto::csi::v1::controller_server::ControllerServer;
use quarry::proto::quarry::v1::agent_server::AgentServer;
use quarry::server::Calls;
use quarry::types::{Bytes, GroupState};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tower::Layer as _;

use super::soon;
use super::stub::Stub;

/// A node's end, which dials `controllers`.
pub(super) struct Node {
    pub(super) dir: Arc<tempfile::TempDir>,
    pub(super) states: Arc<Mutex<Vec<GroupState>>>,
    pub(super) changes: watch::Sender<u64>,
    pub(super) stub: Stub,
    pub(super) events: mpsc::UnboundedReceiver<&'static str>,
    pub(super) stop: CancellationToken,
    dialling: TaskTracker,
    _stopped_at_the_end: DropGuard,
}

/// What a node has mounted: its token, and the CA if it is there.
pub(super) fn mounts(token: &str, ca: Option<&str>) -> Arc<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), token).unwrap();
    if let Some(ca) = ca {
        write_ca(dir.path(), ca);
    }
    Arc::new(dir)
}

/// As the kubelet does it: never half of a file.
pub(super) fn write_ca(dir: &Path, ca: &str) {
    std::fs::write(dir.join("new"), ca).unwrap();
    std::fs::rename(dir.join("new"), dir.join("ca.crt")).unwrap();
}

pub(super) fn write_token(dir: &Path, token: &str) {
    std::fs::write(dir.join("new"), token).unwrap();
    std::fs::rename(dir.join("new"), dir.join("token")).unwrap();
}

pub(super) fn group(maximum: Bytes) -> GroupState {
    GroupState {
        uuid: "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap(),
        name: "vg0".parse().unwrap(),
        trouble: None,
        available: maximum,
        maximum,
    }
}

impl Node {
    pub(super) fn start(controller: SocketAddr, dir: Arc<tempfile::TempDir>, tuning: Tuning) -> Self {
        Self::start_for(Controllers::Fixed([controller].into()), dir, tuning)
    }

    pub(super) fn start_for(controllers: Controllers, dir: Arc<tempfile::TempDir>, tuning: Tuning) -> Self {
        let (stub, events) = Stub::new();
        let dialling = TaskTracker::new();
        let stop = CancellationToken::new();
        let states = Arc::new(Mutex::new(vec![group(Bytes::mib(64))]));
        let (changes, seen) = watch::channel(0);
        let read = Arc::clone(&states);
        let feed = StateFeed::start(
            move || read.lock().unwrap().clone(),
            seen,
            tuning.heartbeat,
            &dialling,
            stop.clone(),
        );
        let token = TokenFile::new(dir.path().join("token"));
        let routes = Routes::new(ControllerServer::new(stub.clone()))
            .add_service(AgentServer::new(Agent::new(feed.clone(), token.clone())));
        let services = Calls::new(TaskTracker::new()).wrap(feed.stamp().layer(routes));
        let ca = dir.path().to_owned();
        let node = "n1".parse().unwrap();
        dialling.spawn(dial(Dial { controllers, node, ca, token, services, tuning }, stop.clone()));
        let _stopped_at_the_end = stop.clone().drop_guard();
        Self { dir, states, changes, stub, events, stop, dialling, _stopped_at_the_end }
    }

    pub(super) async fn event(&mut self) -> &'static str {
        soon("an event on the node", self.events.recv()).await.unwrap()
    }

    /// Stops, and waits until all links are closed.
    pub(super) async fn stopped(self) -> Arc<tempfile::TempDir> {
        self.stop.cancel();
        self.dialling.close();
        soon("the node's end", self.dialling.wait()).await;
        self.dir
    }
}
