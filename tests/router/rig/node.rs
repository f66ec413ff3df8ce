use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quarry::link::{Controllers, Dial, TokenFile, dial};
use quarry::proto::csi::v1::controller_server::ControllerServer;
use quarry::proto::quarry::v1::agent_server::AgentServer;
use quarry::proto::quarry::v1::stock_server::StockServer;
use quarry::server::Calls;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::stub::Stub;
use super::{brisk, soon};
use crate::router::api_server::{ApiServer, token};

const MAPS: &str = "/api/v1/namespaces/quarry/configmaps";

/// The UUID of a group with that number.
pub(crate) fn vg_uuid(number: u32) -> String {
    format!("vvvvv{number}-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4")
}

/// A node with a stub for LVM, which dials controllers.
pub(crate) struct Node {
    pub(crate) stub: Stub,
    pub(crate) dir: Arc<tempfile::TempDir>,
    stop: CancellationToken,
    dialling: TaskTracker,
    /// Ends what keeps the CA's certificates fresh.
    mounted: DropGuard,
    _stopped_at_the_end: DropGuard,
}

impl Node {
    /// A node of that name with its Node object, one group `vg0` with room for 64 MiB, and a good token.
    pub(crate) fn start(server: &ApiServer, name: &str, vg: u32, controllers: &[SocketAddr]) -> Self {
        server.put_node(name, serde_json::json!({}));
        Self::start_without_object(server, name, vg, controllers)
    }

    pub(crate) fn start_without_object(
        server: &ApiServer,
        name: &str,
        vg: u32,
        controllers: &[SocketAddr],
    ) -> Self {
        let token = token(server, name, vg, Duration::from_secs(3600));
        Self::start_with(server, (name, &token), Stub::new(&vg_uuid(vg)), controllers)
    }

    /// With this name and token, and this stub for LVM.
    pub(crate) fn start_with(
        server: &ApiServer,
        (name, token): (&str, &str),
        stub: Stub,
        controllers: &[SocketAddr],
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(dir.path().join("token"), token).unwrap();
        let mounted = kubelet(server.clone(), Arc::clone(&dir));
        Self::start_in(name, dir, mounted, stub, controllers)
    }

    fn start_in(
        name: &str,
        dir: Arc<tempfile::TempDir>,
        mounted: DropGuard,
        stub: Stub,
        controllers: &[SocketAddr],
    ) -> Self {
        let (stop, dialling) = (CancellationToken::new(), TaskTracker::new());
        stub.begin(dir.path(), stop.clone());
        let mut routes =
            Routes::new(ControllerServer::new(stub.clone())).add_service(AgentServer::new(stub.clone()));
        if !stub.is_old() {
            routes = routes.add_service(StockServer::new(stub.clone()));
        }
        dialling.spawn(dial(
            Dial {
                controllers: Controllers::Fixed(controllers.iter().copied().collect()),
                node: name.parse().unwrap(),
                ca: dir.path().to_owned(),
                token: TokenFile::new(dir.path().join("token")),
                services: Calls::new(TaskTracker::new()).wrap(routes),
                tuning: brisk(),
            },
            stop.clone(),
        ));
        let _stopped_at_the_end = stop.clone().drop_guard();
        Self { stub, dir, stop, dialling, mounted, _stopped_at_the_end }
    }

    /// Lets it dial no more. Its links stay until the other end notices.
    pub(crate) fn abandon(&self) {
        self.stop.cancel();
    }

    /// Stops it, and gives back what is left of it.
    pub(crate) async fn stop(self) -> Stub {
        self.stop.cancel();
        self.dialling.close();
        soon("the node's end", self.dialling.wait()).await;
        drop(self.mounted);
        self.stub
    }
}

/// Keeps what is mounted as the ConfigMap has it.
fn kubelet(server: ApiServer, dir: Arc<tempfile::TempDir>) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        let (mut held, mut news) = (String::new(), server.news());
        loop {
            news.borrow_and_update();
            let bundle = bundle(&server);
            if bundle != held {
                write(dir.path(), "ca.crt", &bundle);
                held = bundle;
            }
            news.changed().await.unwrap();
        }
    }));
    stop.drop_guard()
}

pub(crate) fn bundle(server: &ApiServer) -> String {
    let map = server.get(MAPS, "quarry-ca").unwrap();
    map["data"]["ca.crt"].as_str().unwrap_or_default().to_owned()
}

/// As the kubelet does it: never half of a file.
fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join("new"), text).unwrap();
    std::fs::rename(dir.join("new"), dir.join(name)).unwrap();
}
