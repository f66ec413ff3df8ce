//! What `deploy/monitoring` asks of Prometheus is there to be asked for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::documented::{Told, documented};
use crate::deploy::text;

/// Labels that Prometheus itself adds to whatever it scrapes, and to the parts of a histogram.
const ADDED: [&str; 2] = ["instance", "le"];

/// What the parts of a histogram are called.
const PARTS: [&str; 3] = ["_bucket", "_count", "_sum"];

pub(super) fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&text("deploy/monitoring/alerts.yaml")).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect()
}

fn panels() -> Vec<Value> {
    let board: Value = serde_json::from_str(&text("deploy/monitoring/dashboard.json")).unwrap();
    board["panels"].as_array().unwrap().clone()
}

/// All that is asked of Prometheus, with the words in which what comes back is shown.
fn questions() -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let alerts = alerts().into_iter().map(|alert| (word(&alert["expr"]), alert["annotations"].to_string()));
    let panels = panels();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    alerts.chain(targets.map(|target| (word(&target["expr"]), word(&target["legendFormat"])))).collect()
}

/// The words of an expression: names of metrics, labels and functions.
fn words(expr: &str) -> impl Iterator<Item = &str> {
    expr.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

fn metrics() -> Told {
    documented("node").into_iter().chain(documented("controller")).collect()
}

/// The metric that a name means, which may be a part of a histogram.
fn metric<'a>(name: &'a str, metrics: &Told) -> &'a str {
    let part = PARTS.iter().find_map(|part| name.strip_suffix(part));
    part.filter(|whole| metrics.get(*whole).is_some_and(|(kind, _)| kind == "histogram")).unwrap_or(name)
}

/// The labels by which an expression sums up, selects, or is shown.
fn labels(expr: &str, shown: &str) -> BTreeSet<String> {
    let between = |text: &str, open: &str, close: char| -> Vec<String> {
        text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap().to_owned()).collect()
    };
    let grouped = between(expr, "by (", ')')
        .into_iter()
        .flat_map(|all| words(&all).map(str::to_owned).collect::<Vec<_>>());
    let chosen = between(expr, "{", '=');
    let shown = between(shown, "{{", '}')
        .into_iter()
        .map(|label| label.trim().trim_start_matches("$labels.").to_owned());
    grouped.chain(chosen).chain(shown.filter(|label| label != "$value")).collect()
}

#[test]
fn alerts_and_panels_ask_for_metrics_and_labels_that_exist() {
    let metrics = metrics();
    for (expr, shown) in questions() {
        let named: Vec<&str> = words(&expr).filter(|word| word.starts_with("quarry_")).collect();
        assert!(!named.is_empty(), "{expr}");
        for name in named {
            let (_, has) = metrics.get(metric(name, &metrics)).unwrap_or_else(|| panic!("no {name}: {expr}"));
            for label in labels(&expr, &shown) {
                assert!(
                    has.contains(&label) || ADDED.contains(&label.as_str()),
                    "{name} has no {label}: {expr}"
                );
            }
        }
    }
}

#[test]
fn every_metric_about_trouble_is_watched() {
    let asked: String = questions().into_iter().map(|(expr, _)| expr + "\n").collect();
    let told_elsewhere = ["quarry_build_info", "quarry_vg_reserve_bytes", "quarry_vg_metadata_size_bytes"];
    for name in metrics().keys().filter(|name| !told_elsewhere.contains(&name.as_str())) {
        assert!(asked.contains(name.as_str()), "nobody looks at {name}");
    }
}

#[test]
fn each_alert_says_what_it_means_and_stands_in_the_page() {
    let page = text("docs/metrics.md");
    let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `Quarry")).collect();
    let alerts = alerts();
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        let row = format!("{}` |", name.strip_prefix("Quarry").unwrap());
        assert_eq!(rows.iter().filter(|line| line.starts_with(&row)).count(), 1, "{name}");
        assert!(
            ["critical", "warning", "info"].contains(&alert["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
        for words in ["summary", "description"] {
            assert!(
                alert["annotations"][words].as_str().is_some_and(|words| words.len() > 30),
                "{name}: {words}"
            );
        }
    }
    assert_eq!(rows.len(), alerts.len());
}
