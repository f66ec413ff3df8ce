use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::Instrument as _;

use super::deadline::patience;

/// Lets every handler run to its end on a [`TaskTracker`], whatever becomes of its caller.
///
/// A caller whose deadline is about to pass is told ABORTED, "operation pending for this volume"
/// (CSI specification, "Error Scheme"), and the handler goes on; one that went away is not told
/// anything. A handler that panics answers INTERNAL.
#[derive(Debug, Clone)]
pub struct Detach {
    tracker: TaskTracker,
}

impl Detach {
    /// Runs handlers on `tracker`.
    pub const fn new(tracker: TaskTracker) -> Self {
        Self { tracker }
    }
}

impl<S> Layer<S> for Detach {
    type Service = Detached<S>;

    fn layer(&self, inner: S) -> Detached<S> {
        Detached { inner, tracker: self.tracker.clone() }
    }
}

/// A service whose handlers outlive their callers. See [`Detach`].
#[derive(Debug, Clone)]
pub struct Detached<S> {
    inner: S,
    tracker: TaskTracker,
}

impl<S, B> Service<Request<B>> for Detached<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let patience = patience(request.headers());
        let handler = self.tracker.spawn(self.inner.call(request).in_current_span());
        Box::pin(answer(handler, patience))
    }
}

/// The handler's answer, or one in its place. The handler itself is not touched.
async fn answer<E>(
    handler: JoinHandle<Result<Response<Body>, E>>,
    patience: Duration,
) -> Result<Response<Body>, E> {
    let Ok(joined) = tokio::time::timeout(patience, handler).await else {
        tracing::info!(
            waited_ms = patience.as_millis(),
            "the caller's deadline comes first: answering ABORTED"
        );
        let going_on =
            "this takes longer than the caller waits: the operation goes on; asking again joins it";
        return Ok(Status::aborted(going_on).into_http());
    };
    joined.unwrap_or_else(|error| Ok(broken(error).into_http()))
}

fn broken(error: JoinError) -> Status {
    match error.try_into_panic() {
        Ok(panic) => {
            tracing::error!(panic = words(&*panic), "a handler panicked");
            Status::internal("a fault in the driver ended this call: its log says more")
        }
        // Tasks are cancelled only by a runtime that is going away.
        Err(_) => Status::unavailable("the driver is stopping"),
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}
