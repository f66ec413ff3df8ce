//! What a log holds after calls through all three layers.

use std::convert::Infallible;
use std::io;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tokio_util::task::TaskTracker;
use tonic::Status;
use tower::ServiceExt as _;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing_subscriber::fmt::MakeWriter;

use super::super::Detach;
use super::*;
use crate::telemetry::{self, LogFormat};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// A log of this thread, for as long as the guard lives.
    fn start(filter: &str, format: LogFormat) -> (Self, DefaultGuard) {
        // With one subscriber in the whole process, tracing asks only the thread that comes to an event
        // first whether anybody wants it, and remembers the answer: a test on another thread, which has
        // no subscriber, would silence this one.
        static BESIDE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
        LazyLock::force(&BESIDE);
        let log = Self::default();
        let subscriber = telemetry::subscriber(&filter.parse().unwrap(), format, false, log.clone());
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines about calls; other crates may log too.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains("quarry::")).map(str::to_owned).collect()
    }
}

fn ok() -> Response<Body> {
    Response::new(Body::empty())
}

/// One call of `path`, through all layers, to a handler.
async fn call<F>(path: &str, handler: impl FnOnce() -> F + Clone + Send + 'static) -> Response<Body>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    call_within(path, "10S", handler).await
}

async fn call_within<F>(
    path: &str,
    limit: &str,
    handler: impl FnOnce() -> F + Clone + Send + 'static,
) -> Response<Body>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service = tower::service_fn(move |_: Request<&'static str>| {
        let answer = handler.clone()();
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let service =
        Spans::default().layer(Detach::new(TaskTracker::new()).layer(Report::default().layer(service)));
    let request = Request::builder().uri(path).header("grpc-timeout", limit).body("the request's body");
    service.oneshot(request.unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_change_is_logged_once_with_what_its_handler_recorded() {
    let (log, _guard) = Log::start("info", LogFormat::Text);
    call("/csi.v1.Controller/DeleteVolume", || async {
        tracing::Span::current().record("volume_id", "vg/lv");
        tracing::info!("in the middle");
        ok()
    })
    .await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in &lines {
        for part in ["rpc=\"DeleteVolume\"", "request_id=1", "volume_id=\"vg/lv\""] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert!(!line.contains("body"), "{line}");
    }
    assert!(lines[1].contains("INFO") && lines[1].contains("code=Ok") && lines[1].contains("ms="));
}

#[tokio::test]
async fn a_look_is_for_those_who_debug() {
    let (log, _guard) = Log::start("info", LogFormat::Text);
    for method in ["Identity/Probe", "Node/NodeGetCapabilities", "Controller/ListVolumes"] {
        call(&format!("/csi.v1.{method}"), || async { ok() }).await;
    }
    assert_eq!(log.lines(), [""; 0]);
    drop(_guard);
    let (log, _guard) = Log::start("debug", LogFormat::Text);
    call("/csi.v1.Identity/Probe", || async { ok() }).await;
    assert_eq!(log.lines().len(), 1);
}

#[tokio::test]
async fn a_failure_of_the_servers_is_a_warning_that_names_its_call() {
    let (log, _guard) = Log::start("warn", LogFormat::Text);
    call("/csi.v1.Node/NodeGetInfo", || async { Status::internal("disk\ndead").into_http() }).await;
    call("/csi.v1.Node/NodeStageVolume", || async { Status::not_found("no such volume").into_http() }).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "a caller's mistake is no warning: {lines:?}");
    for part in ["WARN", "rpc=\"NodeGetInfo\"", "code=Internal", "error=\"disk\\ndead\""] {
        assert!(lines[0].contains(part), "{part} is not in {}", lines[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_overdue_call_is_logged_when_its_caller_leaves_and_when_it_ends() {
    let (log, _guard) = Log::start("info", LogFormat::Text);
    let (ended, end) = tokio::sync::watch::channel(false);
    let started = tokio::time::Instant::now();
    let answer = call_within("/csi.v1.Controller/CreateVolume", "120S", move || async move {
        tokio::time::sleep(Duration::from_secs(500)).await;
        ended.send_replace(true);
        ok()
    })
    .await;
    assert_eq!(started.elapsed().as_secs(), 119);
    assert_eq!(Status::from_header_map(answer.headers()).unwrap().code(), Code::Aborted);
    let mut end = end;
    end.wait_for(|ended| *ended).await.unwrap();
    tokio::task::yield_now().await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("ABORTED") && lines[1].contains("code=Ok"), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("request_id=1")));
}

#[tokio::test]
async fn a_panic_is_logged_with_its_call() {
    let (log, _guard) = Log::start("error", LogFormat::Text);
    call("/csi.v1.Node/NodeStageVolume", || async { panic!("boom {}", 1) }).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("boom 1") && lines[0].contains("rpc=\"NodeStageVolume\""), "{lines:?}");
}

#[tokio::test]
async fn a_line_of_json_holds_the_same() {
    let (log, _guard) = Log::start("info", LogFormat::Json);
    call("/csi.v1.Node/NodeStageVolume", || async { Status::aborted("busy").into_http() }).await;
    let line: serde_json::Value = serde_json::from_str(&log.lines()[0]).unwrap();
    assert_eq!(line["span"]["rpc"], "NodeStageVolume");
    assert_eq!((&line["code"], &line["error"]), (&"Aborted".into(), &"busy".into()));
}

#[test]
fn methods_that_only_look_are_told_by_their_names() {
    let changes = "CreateVolume DeleteVolume ControllerExpandVolume NodeStageVolume NodeUnstageVolume \
        NodePublishVolume NodeUnpublishVolume NodeExpandVolume CreateSnapshot ControllerModifyVolume";
    let looks = "GetPluginInfo GetPluginCapabilities Probe GetCapacity ControllerGetCapabilities ListVolumes \
        ValidateVolumeCapabilities NodeGetVolumeStats NodeGetCapabilities NodeGetInfo GetSnapshot";
    assert!(changes.split_whitespace().all(|method| !only_looks(method)));
    assert!(looks.split_whitespace().all(only_looks));
    assert_eq!(method("/csi.v1.Node/NodeGetInfo"), "NodeGetInfo");
}
