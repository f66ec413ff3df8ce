//! What Prometheus itself says of `deploy/monitoring/alerts.yaml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use super::monitoring::alerts;
use crate::deploy::text;

const ALERTS: &str = "deploy/monitoring/alerts.yaml";
const TESTS: &str = "deploy/monitoring/alerts.test.yaml";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program, built of the version that `go.mod` beside these tests pins: minutes on a cold machine, else a moment.
/// It knows no service discovery, which rules have no use for, and which is most of what it is made of.
fn promtool() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/promtool");
        let mut go = Command::new("go");
        go.current_dir(root().join("tests/metrics/go")).env("CGO_ENABLED", "0");
        go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-tags", "remove_all_sd"]);
        go.args(["-ldflags", "-s -w", "-o"]).arg(&path);
        go.arg("github.com/prometheus/prometheus/cmd/promtool");
        let output = go.output().expect("cannot start go, which this test needs");
        assert!(output.status.success(), "go build: {}", words(&output));
        path
    })
}

fn words(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(promtool()).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn prometheus_takes_the_rules() {
    let output = run(&["check", "rules", "--lint=all", "--lint-fatal", ALERTS], root());
    assert!(output.status.success(), "{}", words(&output));
    let found = format!("{} rules found", alerts().len());
    assert!(words(&output).contains(&found), "{}", words(&output));
}

#[test]
fn each_alert_fires_for_what_it_is_for_and_for_nothing_else() {
    let output = run(&["test", "rules", TESTS], root());
    assert!(output.status.success(), "{}", words(&output));
}

#[test]
fn an_alert_that_always_or_never_fires_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(root().join(TESTS), folder.path().join("alerts.test.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&text(ALERTS)).unwrap();
    for (at, alert) in alerts().iter().enumerate() {
        let name = alert["alert"].as_str().unwrap();
        for expr in ["vector(1)", "vector(1) > 1"] {
            let mut changed = rules.clone();
            changed["groups"][0]["rules"][at]["expr"] = expr.into();
            // JSON is YAML.
            std::fs::write(folder.path().join("alerts.yaml"), changed.to_string()).unwrap();
            let output = run(&["test", "rules", "alerts.test.yaml"], folder.path());
            assert_eq!(output.status.code(), Some(1), "{name}: {expr}: {}", words(&output));
            assert!(words(&output).contains(name), "{name}: {expr}: {}", words(&output));
        }
    }
}
