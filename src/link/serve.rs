use std::convert::Infallible;
use std::pin::pin;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::Tuning;
use super::exec::Exec;

/// What a node serves over its links: gRPC services, with whatever stands around each call.
pub type Services = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Serves one link until it ends. When `stop` is cancelled it takes no more calls, and ends once those that
/// run have been answered.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    services: Services,
    tuning: &Tuning,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> hyper::Result<()> {
    let gone = CancellationToken::new();
    // Whatever belongs to the link goes with it. Handlers that are to outlive it see to that themselves.
    let _gone = gone.clone().drop_guard();
    let services = services.map_request(|request: Request<Incoming>| request.map(Body::new));
    let connection = http2::Builder::new(Exec { tracker: tracker.clone(), gone })
        .timer(TokioTimer::new())
        .keep_alive_interval(tuning.ping)
        .keep_alive_timeout(tuning.pong)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(services));
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
