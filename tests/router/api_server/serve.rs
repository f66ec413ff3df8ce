use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Bytes;
use hyper::body::{Body, Frame};
use serde_json::{Value, json};
use tokio_stream::wrappers::ReceiverStream;
use tower::Service;

use super::objects::{Answer, Asked, absent, covers};
use super::{ApiServer, Fault};

pub(crate) type Answered = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The server, as what answers HTTP requests.
#[derive(Clone)]
pub(crate) struct Http {
    server: ApiServer,
    cut: Cut,
}

/// The network between one client and the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    /// What that client asks from now on is lost.
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl ApiServer {
    pub(crate) fn service(&self) -> Http {
        self.service_behind(Cut::default())
    }

    pub(super) fn service_behind(&self, cut: Cut) -> Http {
        Http { server: self.clone(), cut }
    }
}

/// Where a request goes.
struct Target {
    collection: String,
    name: Option<String>,
    query: HashMap<String, String>,
}

impl Target {
    fn of(uri: &http::Uri) -> Self {
        let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let group = if parts[0] == "api" { 2 } else { 3 };
        // A namespaced collection has two more parts, but a namespace is an object too.
        let named = parts[group] == "namespaces" && parts.len() > group + 2;
        let end = group + if named { 3 } else { 1 };
        let query = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        Self {
            collection: format!("/{}", parts[..end].join("/")),
            name: parts.get(end).map(|name| (*name).to_owned()),
            query: query.map(|(key, value)| (key.to_owned(), decoded(value))).collect(),
        }
    }
}

fn decoded(text: &str) -> String {
    text.replace("%3D", "=").replace("%2F", "/").replace("%21", "!").replace("%2C", ",")
}

impl<B> Service<Request<B>> for Http
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Debug,
{
    type Response = Answered;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answered, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, cut } = self.clone();
        Box::pin(async move {
            if cut.0.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(server.answer(request).await)
        })
    }
}

impl ApiServer {
    async fn answer<B>(&self, request: Request<B>) -> Answered
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let target = Target::of(&head.uri);
        let watch = target.query.get("watch").is_some_and(|watch| watch == "true");
        let (method, path) = (head.method.as_str().to_owned(), head.uri.path().to_owned());
        let agent = head.headers.get(http::header::USER_AGENT);
        let agent = agent.map_or_else(String::new, |agent| agent.to_str().unwrap().to_owned());
        self.state().objects.asked.push(Asked { method: method.clone(), path: path.clone(), watch, agent });
        self.told();
        match self.fault_for(&method, &path) {
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Code(code)) => return shown(Err((code, "a test wants it so".to_owned()))),
            None if watch => return self.watch(&target),
            None => {}
        }
        let answer = shown(self.act(&method, &target, body));
        self.told();
        answer
    }

    fn act(&self, method: &str, target: &Target, body: Value) -> Answer {
        let (place, name) = (target.collection.as_str(), target.name.as_deref().unwrap_or_default());
        let mut state = self.state();
        let found = &mut state.objects;
        match method {
            "POST" if place.ends_with("/tokenreviews") => {
                let unknown = || json!({"authenticated": false, "error": "[invalid bearer token]"});
                let token = body["spec"]["token"].as_str().unwrap();
                let status = state.reviews.get(token).cloned().unwrap_or_else(unknown);
                Ok(json!({"metadata": {}, "spec": body["spec"], "status": status}))
            }
            "GET" if target.name.is_none() => {
                let query = |key: &str| target.query.get(key).map(String::as_str);
                Ok(found.list(place, query("labelSelector"), query("fieldSelector")))
            }
            "GET" => found.get(place, name).ok_or_else(|| absent(name)),
            "POST" => found.create(place, body),
            "PUT" => found.replace(place, name, body),
            "PATCH" => found.patch(place, name, &body),
            "DELETE" => found.delete(place, name, &body),
            other => Err((405, format!("{other} is not known here"))),
        }
    }

    /// What happened since the version that is named, and all that happens from now on.
    fn watch(&self, target: &Target) -> Answered {
        let mut seen: u64 = target.query["resourceVersion"].parse().unwrap();
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(16);
        let (server, collection) = (self.clone(), target.collection.clone());
        let (mut news, mut breaks) = (self.news.subscribe(), self.breaks.subscribe());
        tokio::spawn(async move {
            loop {
                let new: Vec<(u64, Value)> = {
                    let state = server.state();
                    let history = &state.objects.history;
                    // In order, so that what was seen need not be looked through again.
                    let new = &history[history.partition_point(|(version, _, _)| *version <= seen)..];
                    let new = new.iter().filter(|(_, place, _)| covers(&collection, place));
                    new.map(|(version, _, event)| (*version, event.clone())).collect()
                };
                for (version, event) in new {
                    seen = version;
                    if sender.send(Ok(Frame::data(Bytes::from(format!("{event}\n"))))).await.is_err() {
                        return;
                    }
                }
                tokio::select! {
                    changed = news.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                    _ = breaks.changed() => {
                        // Whoever watches may be gone.
                        drop(sender.send(Ok(Frame::data(broken()))).await);
                        return;
                    }
                }
            }
        });
        Response::new(StreamBody::new(ReceiverStream::new(receiver)).boxed_unsync())
    }
}

/// A status of Kubernetes that tells of a failure.
fn failure(code: u16, message: &str) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": reason})
}

/// The last event of a watch that breaks.
fn broken() -> Bytes {
    let event = json!({"type": "ERROR", "object": failure(500, "a test breaks the watch")});
    Bytes::from(format!("{event}\n"))
}

fn shown(answer: Answer) -> Answered {
    let (code, body) = match answer {
        Ok(object) => (200, object),
        Err((code, message)) => (code, failure(code, &message)),
    };
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

impl ApiServer {
    /// Serves on loopback for as long as the test's runtime lives, and says where.
    pub(crate) async fn listen(&self) -> std::net::SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = self.service();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = hyper_util::service::TowerToHyperService::new(service.clone());
                let io = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
            }
        });
        address
    }
}
