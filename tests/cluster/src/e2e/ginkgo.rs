//! The suite's program: how it is started, and what its report says. It is built on ginkgo.

use std::path::Path;

use serde::Deserialize;
use tokio::process::Command;

use crate::{Error, Paths, program};

/// The folder of the files that describe Quarry to the suite.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e");

/// How the names of all specs for a driver that is described by a file begin.
pub(super) const OURS: &str = "External Storage ";

/// The suite's program, which is to run specs whose names fit `focus`, a regular expression, and to write its report.
/// It asks the API server that `KUBECONFIG` leads to.
pub(super) fn command(paths: &Paths, focus: &str, report: &Path) -> Command {
    let mut command = program::command(paths.bin().join("e2e.test"));
    command
        .current_dir(FOLDER)
        .env("KUBECONFIG", paths.kubeconfig())
        .args(["-storage.testdriver=testdriver.yaml", "-repo-root=.", "-provider=skeleton"])
        .arg(format!("-kubectl-path={}", paths.bin().join("kubectl").display()))
        // Whoever starts it has a limit for it, which ginkgo's own must not undercut.
        .args(["-ginkgo.no-color", "-ginkgo.timeout=24h", "-ginkgo.grace-period=5s"])
        .arg(format!("-ginkgo.focus={focus}"))
        .arg(format!("-ginkgo.json-report={}", report.display()));
    command
}

/// The regular expression that fits this name and no other. What the suite compares it with ends with the name.
pub(super) fn focus_on(name: &str) -> String {
    let quoted = |letter: char| {
        let special = r"\.+*?()|[]{}^$".contains(letter);
        special.then_some('\\').into_iter().chain([letter])
    };
    format!("{}$", name.chars().flat_map(quoted).collect::<String>())
}

/// How a spec ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Passed,
    Failed,
    /// The spec itself said that it is not for this driver or this cluster.
    Skipped,
    /// It was not chosen, or was cut off.
    NotRun,
}

/// A spec in a report.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// All texts around it and its own.
    pub(super) name: String,
    /// The part of the suite that it belongs to.
    pub(super) suite: String,
    pub(super) state: State,
    /// The suite says that it must not run beside others.
    serial: bool,
    pub(super) seconds: f64,
    /// Why it failed or was skipped.
    pub(super) why: String,
}

impl Spec {
    /// Whether it must not run beside others, for their sake or for its own.
    pub(super) fn alone(&self) -> bool {
        self.serial || self.name.contains("[Disruptive]")
    }

    /// For tests.
    #[cfg(test)]
    pub(super) fn of(name: &str, state: State) -> Spec {
        let (name, suite) = (format!("{OURS}{name}"), "one".to_owned());
        Spec { name, suite, state, serial: false, seconds: 1.26, why: "because".into() }
    }
}

/// The specs for our driver, from a report.
pub(super) fn read(report: &Path) -> Result<Vec<Spec>, Error> {
    let text = std::fs::read(report).map_err(Error::at("read", report))?;
    parse(&text)
}

fn parse(text: &[u8]) -> Result<Vec<Spec>, Error> {
    let suites: Vec<Report> = serde_json::from_slice(text).map_err(Error::other)?;
    let nodes = suites.into_iter().flat_map(|suite| suite.spec_reports);
    Ok(nodes.filter(|node| node.leaf_node_type == "It").map(Spec::from).filter(is_ours).collect())
}

fn is_ours(spec: &Spec) -> bool {
    spec.name.starts_with(OURS)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    spec_reports: Vec<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    is_serial: bool,
    state: String,
    /// In nanoseconds.
    run_time: f64,
    failure: Option<Failure>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

impl From<Node> for Spec {
    fn from(node: Node) -> Spec {
        let containers = node.container_hierarchy_texts.unwrap_or_default();
        let why = node.failure.map(|failure| failure.message).unwrap_or_default();
        let state = match node.state.as_str() {
            "passed" => State::Passed,
            // One that was not chosen says nothing.
            "skipped" if !why.is_empty() => State::Skipped,
            "failed" | "panicked" | "timedout" | "aborted" => State::Failed,
            _ => State::NotRun,
        };
        let texts = containers.iter().map(String::as_str).chain([node.leaf_node_text.as_str()]);
        Spec {
            name: texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "),
            suite: suite(&containers),
            state,
            serial: node.is_serial,
            seconds: node.run_time / 1e9,
            why,
        }
    }
}

/// The part of the suite: what stands behind the pattern of volumes, without its labels.
fn suite(containers: &[String]) -> String {
    let pattern = containers.iter().find_map(|text| text.strip_prefix("[Testpattern: "));
    let behind = pattern.and_then(|text| text.split_once("] ")).map_or("", |(_, rest)| rest);
    behind.split(" [").next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(kind: &str, containers: &[&str], text: &str, state: &str, why: Option<&str>) -> Value {
        json!({
            "ContainerHierarchyTexts": containers, "LeafNodeType": kind, "LeafNodeText": text,
            "IsSerial": false, "State": state, "RunTime": 1_500_000_000u64,
            "Failure": why.map(|why| json!({ "Message": why })),
        })
    }

    const AROUND: [&str; 2] =
        ["External Storage [Driver: x]", "[Testpattern: Dynamic PV (ext4)] multiVolume [Slow]"];

    fn specs(nodes: &[Value]) -> Vec<Spec> {
        parse(json!([{ "SpecReports": nodes }]).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_spec_has_its_whole_name_and_its_part_of_the_suite() {
        let other = node("It", &["[sig-storage] CSI Volumes"], "works", "passed", None);
        let before = node("BeforeSuite", &[], "", "passed", None);
        let [spec] = &specs(&[before, other, node("It", &AROUND, "works", "passed", None)])[..] else {
            panic!()
        };
        let name = "External Storage [Driver: x] [Testpattern: Dynamic PV (ext4)] multiVolume [Slow] works";
        assert_eq!((spec.name.as_str(), spec.suite.as_str()), (name, "multiVolume"));
        assert_eq!((spec.state, spec.seconds), (State::Passed, 1.5));
    }

    #[test]
    fn a_spec_that_was_not_chosen_is_none_that_was_skipped() {
        let state = |state, why| specs(&[node("It", &AROUND, "works", state, why)])[0].state;
        assert_eq!(state("skipped", None), State::NotRun);
        assert_eq!(state("skipped", Some("not for this driver")), State::Skipped);
        assert_eq!(state("interrupted", Some("by somebody")), State::NotRun);
        assert_eq!([state("timedout", Some("late")), state("panicked", None)], [State::Failed; 2]);
    }

    #[test]
    fn names_are_taken_word_for_word() {
        assert_eq!(focus_on("a (b) [c] d.e"), r"a \(b\) \[c\] d\.e$");
    }
}
