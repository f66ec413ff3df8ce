use std::net::SocketAddr;
use std::time::Duration;

use quarry::link::{Controllers, Dial, TokenFile, Tuning, Versions, dial};
use quarry::proto::csi::v1::controller_server::ControllerServer;
use quarry::proto::quarry::v1::agent_server::AgentServer;
use quarry::proto::quarry::v1::stock_server::StockServer;
use quarry::server::Calls;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::mounts::Mounts;
use super::stub::Stub;
use super::{brisk, soon};
use crate::router::api_server::{ApiServer, token};

/// The UUID of a group with that number.
pub(crate) fn vg_uuid(number: u32) -> String {
    format!("vvvvv{number}-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4")
}

/// A node with a stub for LVM, which dials controllers.
pub(crate) struct Node {
    pub(crate) stub: Stub,
    pub(crate) mounts: Mounts,
    stop: CancellationToken,
    dialling: TaskTracker,
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
        Self::start_in(name, Mounts::fresh(server, token), stub, Versions::CURRENT, controllers)
    }

    /// With these mounts, and one that speaks these versions of the protocol.
    pub(crate) fn start_in(
        name: &str,
        mounts: Mounts,
        stub: Stub,
        versions: Versions,
        controllers: &[SocketAddr],
    ) -> Self {
        let (stop, dialling) = (CancellationToken::new(), TaskTracker::new());
        stub.begin(mounts.path(), stop.clone());
        let mut routes =
            Routes::new(ControllerServer::new(stub.clone())).add_service(AgentServer::new(stub.clone()));
        if !stub.is_old() {
            routes = routes.add_service(StockServer::new(stub.clone()));
        }
        dialling.spawn(dial(
            Dial {
                controllers: Controllers::Fixed(controllers.iter().copied().collect()),
                node: name.parse().unwrap(),
                ca: mounts.path().to_owned(),
                token: TokenFile::new(mounts.path().join("token")),
                services: Calls::new(TaskTracker::new()).wrap(routes),
                tuning: Tuning { versions, ..brisk() },
            },
            stop.clone(),
        ));
        let _stopped_at_the_end = stop.clone().drop_guard();
        Self { stub, mounts, stop, dialling, _stopped_at_the_end }
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
        self.stub
    }
}
