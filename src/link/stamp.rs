use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};

use super::GENERATION;
use super::feed::Marks;

/// Puts on every RESOURCE_EXHAUSTED which states of the node are older than it: the controller goes by it
/// when it tells the scheduler what room there is. Inside of whatever lets handlers outlive their callers,
/// so that it is the handler's end that counts.
#[derive(Debug, Clone)]
pub struct Stamp {
    marks: Marks,
}

impl Stamp {
    pub(super) const fn new(marks: Marks) -> Self {
        Self { marks }
    }
}

impl<S> Layer<S> for Stamp {
    type Service = Stamped<S>;

    fn layer(&self, inner: S) -> Stamped<S> {
        Stamped { inner, marks: self.marks.clone() }
    }
}

/// A service whose refusals are marked. See [`Stamp`].
#[derive(Debug, Clone)]
pub struct Stamped<S> {
    inner: S,
    marks: Marks,
}

impl<S, B> Service<Request<B>> for Stamped<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (call, marks) = (self.inner.call(request), self.marks.clone());
        Box::pin(async move {
            let mut response = call.await?;
            let status = Status::from_header_map(response.headers());
            if status.is_some_and(|status| status.code() == Code::ResourceExhausted) {
                response.headers_mut().insert(GENERATION, HeaderValue::from(marks.refusal()));
            }
            Ok(response)
        })
    }
}
