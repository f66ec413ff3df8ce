//! What a controller costs that has very many nodes: `make bench-scale`.
//!
//! The controller is a process, and its API server is one in memory. The nodes are simulated, and their end of the link
//! is the driver's own: they dial, say hello with a token, serve, send their state at the usual pace, and dial again when
//! their link is lost.

mod controller;
mod nodes;

use std::path::Path;
use std::time::{Duration, Instant};

use lab::Dice;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use self::controller::Controller;
use self::nodes::Nodes;
use super::report::{self, Figure, Report};
use super::samples::{Samples, ms};
use super::target;
use crate::driver;
use crate::router::ApiServer;

/// How many nodes there are, one number for each round, where this variable does not say otherwise.
const NODES: (&str, &str) = ("QUARRY_BENCH_NODES", "1000 10000");

/// What a process needs beside one open file for each node.
const FILES: u64 = 1000;

/// How thoroughly it is measured.
struct Scope {
    /// Over what time nodes start one after another, as those of a cluster do: none of them sends its state at the
    /// same moment as another.
    start: Duration,
    /// For how long the controller is left alone: a multiple of the times of its pings, its states and its rounds.
    rest: Duration,
    /// How many calls are timed.
    calls: usize,
}

#[test]
#[ignore = "it measures, and takes minutes: make bench-scale"]
fn many_nodes_on_one_controller() {
    let scope = Scope { start: Duration::from_secs(15), rest: Duration::from_secs(60), calls: 5000 };
    let numbers = std::env::var(NODES.0).unwrap_or_else(|_| NODES.1.to_owned());
    let numbers: Vec<usize> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let folder = target().join("bench/scale");
    std::fs::create_dir_all(&folder).unwrap();
    let shown = report::Shown::begin(&folder);
    let mut report = Report::begin(&folder);
    for nodes in numbers {
        driver::run(measure(&mut report, &folder, nodes, &scope));
    }
    report.end();
    drop(shown);
    report::merge(&folder.join(report::JSON), &target().join(report::JSON));
}

#[test]
fn all_of_it_is_measured_with_few_nodes_too() {
    let scope = Scope { start: Duration::from_millis(100), rest: Duration::from_secs(1), calls: 20 };
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::begin(folder.path());
    driver::run(measure(&mut report, folder.path(), 12, &scope));
    report.end();
    let text = std::fs::read_to_string(folder.path().join(report::JSON)).unwrap();
    let figures: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    let whats = [
        "connections",
        "capacity_p50",
        "capacity_p99",
        "idle_cpu_percent",
        "anonymous_mib",
        "recovery_seconds",
    ];
    assert_eq!(names, whats.map(|what| format!("scale_12_{what}")));
    assert_eq!(figures[0]["ours"], 12.0);
    for figure in &figures {
        assert!(figure["reference"].is_null() && figure["ratio"].is_null(), "{figure}");
    }
}

async fn measure(report: &mut Report, folder: &Path, count: usize, scope: &Scope) {
    allow_files(count);
    let server = ApiServer::new();
    let controller = Controller::start(&server, &folder.join(format!("controller-{count}.log"))).await;
    let alone = controller.anonymous_mib();
    let nodes = Nodes::start(&server, controller.link, count, scope.start).await;
    let mut add = |what: &str, value, unit| {
        report.add(Figure::new(format!("scale_{count}_{what}"), value, None, unit));
    };
    add("connections", controller.linked(count).await, "");
    controller.knows(&nodes).await;

    let capacity = calls(scope.calls, &nodes, async |node| controller.capacity(node).await.map(drop)).await;
    add("capacity_p50", ms(capacity.percentile(50)), "ms");
    add("capacity_p99", ms(capacity.percentile(99)), "ms");
    let before = controller.cpu();
    tokio::time::sleep(scope.rest).await;
    let worked = controller.cpu() - before;
    add("idle_cpu_percent", 100.0 * worked.as_secs_f64() / scope.rest.as_secs_f64(), "%");
    add("anonymous_mib", controller.anonymous_mib(), "MiB");
    let passed_on = calls(scope.calls, &nodes, async |node| controller.delete(node).await).await;

    let begin = Instant::now();
    let controller = controller.killed().start_again().await;
    controller.linked(count).await;
    add("recovery_seconds", begin.elapsed().as_secs_f64(), "s");
    let worked = controller.cpu();
    controller.knows(&nodes).await;
    report.note(&format!("  a call passed on to its node: {passed_on}"));
    report.note(&format!(
        "  before a node had come: {alone:.1} MiB; after all had come back: {:.1} MiB, and {:.2} s of work",
        controller.anonymous_mib(),
        worked.as_secs_f64()
    ));
    nodes.stop().await;
}

/// Times calls about nodes taken at random, one after another.
async fn calls(
    count: usize,
    nodes: &Nodes,
    call: impl AsyncFn(&nodes::Simulated) -> Result<(), tonic::Status>,
) -> Samples {
    let (mut times, mut dice) = (Samples::default(), Dice::new(1, 0));
    for _ in 0..count {
        let all = nodes.all();
        let node = &all[usize::try_from(dice.number(0..all.len() as u64)).unwrap()];
        let begin = Instant::now();
        call(node).await.unwrap_or_else(|status| panic!("{}: {status}", node.name));
        times.add(begin.elapsed());
    }
    times
}

/// Lets this process have a connection for each node. The controller sees to itself.
fn allow_files(nodes: usize) {
    let needed = nodes as u64 + FILES;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let most = hard.max(needed);
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap_or_else(|error| {
        panic!("{nodes} nodes take {needed} open files, and {hard} are allowed here (ulimit -Hn): {error}")
    });
}
