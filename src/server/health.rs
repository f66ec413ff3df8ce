use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::address::reachable;
use crate::types::chain;

/// Where it is asked whether the driver is ready.
const READY: &str = "/healthz";

/// Where it is asked whether the process answers at all.
const ALIVE: &str = "/livez";

/// Where metrics are.
const METRICS: &str = "/metrics";

/// How long one connection may take: one question, one answer.
const LONGEST: Duration = Duration::from_secs(5);

/// The format of all answers: Prometheus' text, which any text is.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How many connections are served at a time.
const MOST: usize = 16;

/// How long accepting rests after it failed.
const REST: Duration = Duration::from_millis(100);

/// Tells those who ask over HTTP whether the driver is ready: `GET /healthz` answers 200 or 503, and `GET
/// /livez` always 200, for probes of the kubelet. `GET /metrics` answers what Prometheus wants to know.
#[derive(Debug)]
pub struct Health {
    listener: TcpListener,
}

/// No health endpoint.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on the health address {address}")]
pub struct HealthError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

impl Health {
    /// Listens at `address`; where that is every address of IPv6 and the machine has none, at all of IPv4.
    ///
    /// # Errors
    /// Somebody else does, or the machine has no such address.
    pub async fn bind(address: SocketAddr) -> Result<Self, HealthError> {
        let address = reachable(address);
        let listener = TcpListener::bind(address).await;
        listener.map(|listener| Self { listener }).map_err(|source| HealthError { address, source })
    }

    /// Where it listens, also when the system chose the port.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers with what `ready` and `metrics` say at that moment, which must be from memory, until `stop` is
    /// cancelled.
    pub async fn serve(
        self,
        ready: impl Fn() -> bool + Send + Sync + 'static,
        metrics: impl Fn() -> String + Send + Sync + 'static,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) {
        let (answers, room) = (Arc::new((ready, metrics)), Arc::new(Semaphore::new(MOST)));
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            match (accepted, Arc::clone(&room).try_acquire_owned()) {
                (Ok((stream, _)), Ok(place)) => {
                    let (answers, stop) = (Arc::clone(&answers), stop.clone());
                    tracker.spawn(async move {
                        let _place = place;
                        stop.run_until_cancelled(timeout(LONGEST, answer(stream, &answers.0, &answers.1)))
                            .await
                    });
                }
                // Who comes when all places are taken is turned away: the next probe is near.
                (Ok(_), Err(_)) => {}
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept a connection of a probe");
                    sleep(REST).await;
                }
            }
        }
    }
}

async fn answer(
    stream: TcpStream,
    ready: &(impl Fn() -> bool + Sync),
    metrics: &(impl Fn() -> String + Sync),
) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), ready(), metrics);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LONGEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(error = chain(&error), "a connection of a probe failed");
    }
}

fn respond(method: &Method, path: &str, ready: bool, metrics: impl Fn() -> String) -> Response<String> {
    let (status, text) = match (path, method) {
        (ALIVE, &Method::GET | &Method::HEAD) => (StatusCode::OK, "ok\n".to_owned()),
        (READY, &Method::GET | &Method::HEAD) if ready => (StatusCode::OK, "ok\n".to_owned()),
        (READY, &Method::GET | &Method::HEAD) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
        (METRICS, &Method::GET | &Method::HEAD) => (StatusCode::OK, metrics()),
        (READY | ALIVE | METRICS, _) => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "only /healthz, /livez and /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(FORMAT));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const BOUND: Duration = Duration::from_secs(20);

    async fn ask(address: SocketAddr, line: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{line} HTTP/1.1\r\nHost: node\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        timeout(BOUND, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    #[tokio::test]
    async fn probes_learn_whether_the_driver_is_ready() {
        let health = Health::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = health.address().unwrap();
        let (is_ready, stop, tracker) =
            (Arc::new(AtomicBool::new(false)), CancellationToken::new(), TaskTracker::new());
        let said = Arc::clone(&is_ready);
        let ready = move || said.load(Ordering::Relaxed);
        tracker.spawn(health.serve(ready, || "quarry 1\n".to_owned(), tracker.clone(), stop.clone()));
        // Not even those who say nothing keep a probe out.
        let _silent = TcpStream::connect(address).await.unwrap();
        assert!(ask(address, "GET /healthz").await.starts_with("HTTP/1.1 503"));
        assert!(ask(address, "GET /livez").await.starts_with("HTTP/1.1 200"));
        is_ready.store(true, Ordering::Relaxed);
        let answer = ask(address, "GET /healthz").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
        let metrics = ask(address, "GET /metrics").await;
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("\r\n\r\nquarry 1\n"), "{metrics}");
        assert!(ask(address, "POST /healthz").await.starts_with("HTTP/1.1 405"));
        assert!(ask(address, "GET /").await.starts_with("HTTP/1.1 404"));
        stop.cancel();
        tracker.close();
        timeout(BOUND, tracker.wait()).await.unwrap();
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named() {
        let health = Health::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = health.address().unwrap();
        let error = Health::bind(address).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
