//! Calls over a real socket, to handlers that do as a test says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint as ClientEndpoint};
use tonic::{Code, Request, Response, Status};
use tower::{Layer as _, Service as _};

use super::*;
use crate::proto::csi::v1 as proto;
use proto::identity_client::IdentityClient;
use proto::identity_server::{Identity, IdentityServer};

/// No wait in a test takes longer than this.
const BOUND: Duration = Duration::from_secs(20);

/// Probe says that it began, waits to be released, and says that it ended; GetPluginInfo answers at
/// once; GetPluginCapabilities panics.
struct Handlers {
    events: mpsc::UnboundedSender<&'static str>,
    release: Arc<Semaphore>,
}

#[tonic::async_trait]
impl Identity for Handlers {
    async fn probe(&self, _: Request<proto::ProbeRequest>) -> Result<Response<proto::ProbeResponse>, Status> {
        self.events.send("began").unwrap();
        self.release.acquire().await.unwrap().forget();
        self.events.send("ended").unwrap();
        Ok(Response::new(Default::default()))
    }

    async fn get_plugin_info(
        &self,
        _: Request<proto::GetPluginInfoRequest>,
    ) -> Result<Response<proto::GetPluginInfoResponse>, Status> {
        Ok(Response::new(Default::default()))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<proto::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<proto::GetPluginCapabilitiesResponse>, Status> {
        panic!("boom");
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    events: mpsc::UnboundedReceiver<&'static str>,
    release: Arc<Semaphore>,
    shutdown: CancellationToken,
    tests: TaskTracker,
    server: tokio::task::JoinHandle<Result<Drained, ServeError>>,
}

impl Fixture {
    fn new(grace: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = dir.path().join("csi.sock").to_str().unwrap().parse().unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let release = Arc::new(Semaphore::new(0));
        let handlers = Handlers { events: sender, release: Arc::clone(&release) };
        let shutdown = CancellationToken::new();
        let routes = Routes::new(IdentityServer::new(handlers));
        let socket = Socket::bind(&endpoint).unwrap();
        let tests = TaskTracker::new();
        let server =
            tests.spawn(serve(socket, routes, Calls::new(TaskTracker::new()), shutdown.clone(), grace));
        Self { dir, events, release, shutdown, tests, server }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("csi.sock")
    }

    async fn client(&self) -> Result<IdentityClient<Channel>, tonic::transport::Error> {
        let uri = format!("unix://{}", self.path().display());
        Ok(IdentityClient::new(ClientEndpoint::from_shared(uri).unwrap().connect().await?))
    }

    async fn event(&mut self) -> Option<&'static str> {
        timeout(BOUND, self.events.recv()).await.unwrap()
    }

    async fn drained(self) -> Drained {
        timeout(BOUND, self.server).await.unwrap().unwrap().unwrap()
    }
}

fn within<T>(limit: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

#[tokio::test]
async fn shutdown_finishes_what_runs_and_refuses_what_is_new() {
    let mut fixture = Fixture::new(BOUND);
    let mut client = fixture.client().await.unwrap();
    let call = fixture.tests.spawn(async move { client.probe(proto::ProbeRequest {}).await });
    assert_eq!(fixture.event().await, Some("began"));

    fixture.shutdown.cancel();
    timeout(BOUND, async {
        while fixture.client().await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert!(!fixture.path().exists());

    fixture.release.add_permits(1);
    assert!(timeout(BOUND, call).await.unwrap().unwrap().is_ok());
    assert_eq!(fixture.drained().await, Drained::Complete);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_stop_the_handler_and_shutdown_waits_for_it() {
    let mut fixture = Fixture::new(BOUND);
    let mut client = fixture.client().await.unwrap();
    tokio::select! {
        answer = client.probe(proto::ProbeRequest {}) => panic!("{answer:?}"),
        event = fixture.event() => assert_eq!(event, Some("began")),
    }
    // The call was dropped with the select: the stream is reset now.
    drop(client);

    fixture.shutdown.cancel();
    fixture.release.add_permits(1);
    assert_eq!(fixture.event().await, Some("ended"));
    assert_eq!(fixture.drained().await, Drained::Complete);
}

#[tokio::test]
async fn a_deadline_is_answered_and_the_handler_goes_on() {
    let mut fixture = Fixture::new(BOUND);
    let mut client = fixture.client().await.unwrap();
    let status = client.probe(within(Duration::from_millis(400), proto::ProbeRequest {})).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().contains("the operation goes on"), "{status}");
    assert!(status.details().is_empty());

    assert_eq!(fixture.event().await, Some("began"));
    fixture.release.add_permits(1);
    assert_eq!(fixture.event().await, Some("ended"));
}

#[tokio::test]
async fn whoever_drops_the_answer_does_not_stop_the_handler() {
    // As the transport's own timeout does, which stands outside of the layers.
    let (sender, mut events) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |_: http::Request<()>| {
        let events = sender.clone();
        async move {
            events.send("ended").unwrap();
            Ok::<_, std::convert::Infallible>(http::Response::new(tonic::body::Body::empty()))
        }
    });
    drop(Detach::new(TaskTracker::new()).layer(service).call(http::Request::new(())));
    assert_eq!(timeout(BOUND, events.recv()).await.unwrap(), Some("ended"));
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let fixture = Fixture::new(BOUND);
    let mut client = fixture.client().await.unwrap();
    let request = proto::GetPluginCapabilitiesRequest {};
    let status = client.get_plugin_capabilities(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(!status.message().contains("boom"), "what a panic says is for the log");
    assert!(client.get_plugin_info(proto::GetPluginInfoRequest {}).await.is_ok());
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let fixture = Fixture::new(BOUND);
    let mut client = fixture.client().await.unwrap();
    client.get_plugin_info(proto::GetPluginInfoRequest {}).await.unwrap();
    // Not even one whose other end never says anything.
    let _frozen = tokio::net::UnixStream::connect(fixture.path()).await.unwrap();
    fixture.shutdown.cancel();
    assert_eq!(fixture.drained().await, Drained::Complete);
}

#[tokio::test]
async fn the_grace_period_ends_the_wait() {
    let mut fixture = Fixture::new(Duration::from_millis(50));
    let mut client = fixture.client().await.unwrap();
    fixture.tests.spawn(async move { client.probe(proto::ProbeRequest {}).await });
    assert_eq!(fixture.event().await, Some("began"));
    fixture.shutdown.cancel();
    assert_eq!(fixture.drained().await, Drained::Early { left: 1 });
}
