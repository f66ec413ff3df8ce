use std::convert::Infallible;
use std::pin::pin;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::Tuning;
use super::exec::Exec;

/// What a node serves over its links: gRPC services, with whatever stands around each call.
pub type Services = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Why a link ended that was not asked to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServeError {
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[from] hyper::Error),
    /// The controller welcomed this node, and then never called.
    #[error("the controller says nothing")]
    Silent,
}

/// Serves one link until it ends. When `stop` is cancelled it takes no more calls, and ends once those that
/// run have been answered.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    services: Services,
    tuning: &Tuning,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let gone = CancellationToken::new();
    // Whatever belongs to the link goes with it. Handlers that are to outlive it see to that themselves.
    let _gone = gone.clone().drop_guard();
    let called = CancellationToken::new();
    let first = called.clone();
    let services = services.map_request(move |request: Request<Incoming>| {
        first.cancel();
        request.map(Body::new)
    });
    let connection = http2::Builder::new(Exec { tracker: tracker.clone(), gone })
        .timer(TokioTimer::new())
        .keep_alive_interval(tuning.ping)
        .keep_alive_timeout(tuning.pong)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(services));
    let mut connection = pin!(connection);
    // Pings begin with HTTP/2, and that begins with the controller's first words: until then nothing else
    // tells a frozen connection from a quiet one.
    let silent = async {
        if timeout(tuning.hello, called.cancelled()).await.is_ok() {
            std::future::pending().await
        }
    };
    tokio::select! {
        ended = connection.as_mut() => return Ok(ended?),
        () = silent => return Err(ServeError::Silent),
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}
