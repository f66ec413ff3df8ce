//! What is logged and counted of a call: where it begins and ends, never what is in it.
//!
//! Two layers, since a handler can outlive its caller: [`Spans`] goes outside of
//! [`Detach`](super::Detach), so that everything said about a call carries its number; [`Report`] goes inside,
//! so that the one line about a call's end tells when and how the *handler* ended.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Request, Response};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument as _;
use tracing::instrument::Instrumented;

use super::Measure;

/// Puts every call into a span `rpc` of its own, with the method's name and a running number.
///
/// Handlers may record `volume_id` and `name` (a CSI name) in it, with [`Span::record`](tracing::Span::record).
#[derive(Debug, Clone, Default)]
pub struct Spans {
    last: Arc<AtomicU64>,
}

impl<S> Layer<S> for Spans {
    type Service = Spanned<S>;

    fn layer(&self, inner: S) -> Spanned<S> {
        Spanned { inner, last: Arc::clone(&self.last) }
    }
}

/// A service whose calls run in spans. See [`Spans`].
#[derive(Debug, Clone)]
pub struct Spanned<S> {
    inner: S,
    last: Arc<AtomicU64>,
}

impl<S, B> Service<Request<B>> for Spanned<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request_id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let rpc = method(request.uri().path());
        // A span has to be at the level of the gravest event in it, or a log that shows warnings only
        // does not say what they are about.
        let span = tracing::error_span!(
            "rpc",
            rpc,
            request_id,
            volume_id = tracing::field::Empty,
            name = tracing::field::Empty
        );
        let _inside = span.enter();
        self.inner.call(request).instrument(span.clone())
    }
}

/// The last part of `/csi.v1.Node/NodeStageVolume`.
fn method(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Logs and counts the end of every call: its gRPC code, its message where it failed, and how long it took.
#[derive(Debug, Clone, Default)]
pub struct Report {
    measure: Measure,
}

impl Report {
    /// A report that counts with `measure`.
    pub const fn new(measure: Measure) -> Self {
        Self { measure }
    }
}

impl<S> Layer<S> for Report {
    type Service = Reported<S>;

    fn layer(&self, inner: S) -> Reported<S> {
        Reported { inner, measure: self.measure.clone() }
    }
}

/// A service whose calls' ends are logged and counted. See [`Report`].
#[derive(Debug, Clone)]
pub struct Reported<S> {
    inner: S,
    measure: Measure,
}

impl<S, B> Service<Request<B>> for Reported<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, measure) = (method(request.uri().path()).to_owned(), self.measure.clone());
        let call = self.inner.call(request);
        Box::pin(async move {
            let started = Instant::now();
            let result = call.await;
            if let Ok(response) = &result {
                // What the headers do not call a failure is none: its code comes in the trailers.
                let (took, status) = (started.elapsed(), Status::from_header_map(response.headers()));
                measure.ended(&method, took, status.as_ref().map_or(Code::Ok, Status::code));
                log(only_looks(&method), took, status);
            }
            result
        })
    }
}

/// Whether a method changes nothing, by the words that CSI puts into the names of such methods.
fn only_looks(method: &str) -> bool {
    ["Get", "List", "Probe", "Validate"].iter().any(|word| method.contains(word))
}

/// `failure` is what the response's headers say; an answer that is not one has its code in the trailers.
fn log(quiet: bool, took: Duration, failure: Option<Status>) {
    let ms = took.as_millis();
    let Some(status) = failure.filter(|status| status.code() != Code::Ok) else {
        if quiet {
            tracing::debug!(code = ?Code::Ok, ms, "done");
        } else {
            tracing::info!(code = ?Code::Ok, ms, "done");
        }
        return;
    };
    let (code, error) = (status.code(), status.message());
    match code {
        Code::Internal
        | Code::Unknown
        | Code::Unavailable
        | Code::DataLoss
        | Code::DeadlineExceeded
        | Code::Cancelled => tracing::warn!(?code, ms, error, "failed"),
        _ => tracing::info!(?code, ms, error, "refused"),
    }
}

#[cfg(test)]
mod tests;
