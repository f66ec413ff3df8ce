use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use crate::types::{CallTimeout, chain};

/// The way to a node's services: what tonic's generated clients are made on.
///
/// Every error that the connection makes comes out as UNAVAILABLE, at once when the link is lost: the
/// call may have had its effect. A caller's deadline is passed on a second shorter, so that the node's
/// answer arrives in time to be passed on; who names none waits for just under two minutes.
#[derive(Debug, Clone)]
pub struct Channel {
    pub(super) requests: SendRequest<Body>,
    pub(super) node: Arc<str>,
    pub(super) gone: CancellationToken,
}

impl Channel {
    async fn pass(mut self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let limit = shorten(&mut request);
        *request.uri_mut() = absolute(request.uri());
        let call = async {
            self.requests.ready().await?;
            self.requests.send_request(request).await
        };
        let answer = tokio::select! {
            biased;
            answer = timeout(limit.get(), call) => answer,
            () = self.gone.cancelled() => return Err(lost(&self.node)),
        };
        match answer {
            Ok(Ok(response)) => Ok(self.answered(response)),
            Ok(Err(error)) => {
                tracing::debug!(node = &*self.node, error = chain(&error), "a call failed with its link");
                Err(lost(&self.node))
            }
            Err(_) => Err(Status::unavailable(format!(
                "node {} did not answer within {:?}: the operation may go on there",
                self.node,
                limit.get()
            ))),
        }
    }

    fn answered(self, response: Response<Incoming>) -> Response<Body> {
        let node = self.node;
        response.map(|body| Body::new(body.map_err(move |_| lost(&node))))
    }
}

fn lost(node: &str) -> Status {
    Status::unavailable(format!(
        "the link to node {node} was lost: what was asked of it may have been done, or still be going on"
    ))
}

/// Shortens the request's deadline, and says for how long an answer is waited for here.
fn shorten(request: &mut Request<Body>) -> CallTimeout {
    let header = request.headers().get(CallTimeout::HEADER);
    let limit = CallTimeout::from_header(header.and_then(|value| value.to_str().ok())).earlier();
    if let Ok(value) = HeaderValue::try_from(limit.to_string()) {
        request.headers_mut().insert(CallTimeout::HEADER, value);
    }
    limit
}

/// HTTP/2 wants to know whom a request is for, although only one can be reached here.
fn absolute(uri: &Uri) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(Authority::from_static("quarry-node"));
    parts.path_and_query = uri.path_and_query().cloned().or_else(|| Some(PathAndQuery::from_static("/")));
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    /// Always ready: what a client makes of an error here would not be UNAVAILABLE.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}
