//! Every value of the chart has a comment, and the schema knows it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::{path, text, tools};

/// The keys in values.yaml, as paths with dots, and whether a comment stands above each.
fn written() -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    // The keys above the present line, each with its column.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut comment_at = None;
    for line in text("deploy/chart/values.yaml").lines() {
        let (column, rest) = start(line);
        if rest.starts_with('#') {
            comment_at = Some(column);
            continue;
        }
        if let Some((key, _)) = rest.split_once(':').filter(|(key, _)| is_key(key)) {
            above.retain(|(at, _)| *at < column);
            above.push((column, key.to_owned()));
            let path: Vec<&str> = above.iter().map(|(_, key)| key.as_str()).collect();
            found.insert(path.join("."), comment_at == Some(column));
        }
        comment_at = None;
    }
    found
}

/// The column of a line's first word, and the line from there; the hyphen of a list's item is passed over.
fn start(line: &str) -> (usize, &str) {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    (line.len() - rest.len(), rest)
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The keys that a schema names, as paths with dots.
fn named(schema: &Value, definitions: &Value, path: &str, found: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        Some(name) => &definitions[name],
        None => schema,
    };
    if schema["items"]["properties"].is_object() {
        named(&schema["items"], definitions, path, found);
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        named(below, definitions, &path, found);
        found.insert(path);
    }
}

/// Whether a value is Kubernetes' own matter, which its documentation describes.
fn is_kubernetes(path: &str) -> bool {
    let free = |part: &str| matches!(part, "tolerations" | "requests" | "limits");
    path.split('.').any(|part| part == "global") || path.split('.').rev().skip(1).any(free) || {
        path.ends_with(".requests") || path.ends_with(".limits") || path == "image.pullSecrets.name"
    }
}

#[test]
fn every_value_has_a_comment_and_the_schema_knows_it() {
    let schema: Value = serde_json::from_str(&text("deploy/chart/values.schema.json")).unwrap();
    let mut known = BTreeSet::new();
    named(&schema, &schema["$defs"], "", &mut known);
    known.retain(|path| !is_kubernetes(path));
    let mut written = written();
    written.retain(|path, _| !is_kubernetes(path));
    let names: BTreeSet<String> = written.keys().cloned().collect();
    assert_eq!(known.symmetric_difference(&names).collect::<Vec<_>>(), Vec::<&String>::new());
    let silent: Vec<_> = written.iter().filter(|(_, commented)| !**commented).map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "no comment above {silent:?}");
    assert!(names.len() > 40 && names.contains("volumeGroups.reserve"), "{names:?}");
}

#[test]
fn helm_has_nothing_to_say_against_the_chart() {
    let mut helm = Command::new(tools::cluster("helm"));
    let said = tools::output(helm.args(["lint", "--strict"]).arg(path("deploy/chart")));
    assert!(!said.contains("[WARNING]") && !said.contains("[ERROR]"), "{said}");
}

#[test]
fn a_wrong_value_is_refused_before_anything_is_installed() {
    for (wrong, named) in [
        ("controller.replicas=3", "/controller/replicas"),
        ("controller.replica=2", "replica"),
        ("node.kubeletDir=var/lib/kubelet", "/node/kubeletDir"),
        ("node.maxUnavailable=0", "/node/maxUnavailable"),
        ("node.resources.quarry.limits.memory=1Gi", "/node/resources/quarry/limits"),
        ("log.format=xml", "/log/format"),
        ("image.digest=1234", "/image/digest"),
        ("volumeGroups[0].name=a b", "/volumeGroups/0/name"),
        ("volumeGroups[0].reserved=1GiB", "reserved"),
        ("volumeGroups[0].name=a,volumeGroups[0].reserve=10%", "/volumeGroups/0/reserve"),
        ("volumeGroups[0].name=a,volumeGroups[0].reserve=50", "/volumeGroups/0/reserve"),
        ("log.level=loud", "/log/level"),
    ] {
        let mut helm = Command::new(tools::cluster("helm"));
        helm.args(["template", "quarry", "--set", wrong]).arg(path("deploy/chart"));
        let output = helm.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(named), "{wrong}: {said}");
    }
}
