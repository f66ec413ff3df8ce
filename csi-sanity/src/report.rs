//! Reads the suite's report and says what is wrong with it.

use serde::Deserialize;

use crate::error::Error;
use crate::expected::Skip;

/// The suite prints whole Go values; their first lines say what they are.
const MESSAGE_LINES: usize = 6;

/// One run of the suite, as ginkgo's JSON report has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Suite {
    spec_reports: Vec<Spec>,
    special_suite_failure_reasons: Option<Vec<String>>,
}

/// A spec, or something that runs before or after all of them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    failure: Option<Failure>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
    location: Location,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Location {
    file_name: String,
    line_number: u32,
}

/// The report of one run.
pub(crate) fn parse(text: &[u8]) -> Result<Suite, Error> {
    let [suite] = serde_json::from_slice(text).map_err(Error::Report)?;
    Ok(suite)
}

/// The outcome of one run.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    passed: usize,
    /// Failed specs and whatever else is wrong.
    pub(crate) failed: usize,
    skipped: usize,
    /// One text for each failure.
    pub(crate) complaints: Vec<String>,
}

impl Verdict {
    /// The outcome of a run that could not be made.
    pub(crate) fn impossible(why: String) -> Verdict {
        let mut verdict = Verdict::default();
        verdict.complain(why);
        verdict
    }

    /// Counts a failure.
    pub(crate) fn complain(&mut self, what: String) {
        self.failed += 1;
        self.complaints.push(what);
    }

    /// The line that ends the output.
    pub(crate) fn line(&self, access: &str) -> String {
        format!("{access}: {} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Counts the specs. A spec that is skipped and should not be counts as failed, and so does one that ran though
/// it should be skipped: the table must stay true.
pub(crate) fn judge(suite: &Suite, expected: &[Skip]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = vec![false; expected.len()];
    for spec in &suite.spec_reports {
        let name = spec.name();
        let row = expected.iter().position(|row| name.starts_with(row.specs));
        if let Some(used) = row.and_then(|row| used.get_mut(row)) {
            *used = true;
        }
        let allowed = row.and_then(|row| expected.get(row));
        judge_spec(&mut verdict, spec, &name, allowed);
    }
    for (row, _) in expected.iter().zip(used).filter(|(_, used)| !used) {
        verdict.complain(format!("expected to be skipped, but not in the suite: {}", row.specs));
    }
    for reason in suite.special_suite_failure_reasons.iter().flatten() {
        verdict.complain(format!("the suite: {reason}"));
    }
    if verdict.passed == 0 {
        verdict.complain("no spec has passed".to_owned());
    }
    verdict
}

fn judge_spec(verdict: &mut Verdict, spec: &Spec, name: &str, allowed: Option<&Skip>) {
    match (spec.state.as_str(), allowed) {
        // What runs before or after all specs is no spec.
        ("passed", _) if spec.leaf_node_type != "It" => {}
        ("passed", None) => verdict.passed += 1,
        ("passed", Some(row)) => verdict.complain(format!(
            "{name}: ran, though it should be skipped for lack of {} ({})",
            row.capability, row.reason
        )),
        ("skipped" | "pending", Some(_)) => verdict.skipped += 1,
        ("skipped" | "pending", None) => {
            verdict.complain(format!("{name}: skipped, and not expected to be: {}", spec.why()));
        }
        (state, _) => verdict.complain(format!("{name}: {state}: {}", spec.why())),
    }
}

impl Spec {
    /// All texts around it and its own.
    fn name(&self) -> String {
        let containers = self.container_hierarchy_texts.iter().flatten().map(String::as_str);
        let parts: Vec<_> = containers.chain([self.leaf_node_text.as_str()]).collect();
        parts.join(" ")
    }

    fn why(&self) -> String {
        match &self.failure {
            Some(Failure { message, location }) => {
                let message: Vec<_> = message.lines().take(MESSAGE_LINES).collect();
                let file = location.file_name.rsplit('/').next().unwrap_or_default();
                format!("{} ({file}:{})", message.join("\n"), location.line_number)
            }
            None => "no reason given".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const EXPECTED: &[Skip] = &[Skip { specs: "Lists", capability: "LIST", reason: "none" }];

    fn spec(name: &str, state: &str) -> Value {
        json!({
            "ContainerHierarchyTexts": [name.split(' ').next()], "LeafNodeType": "It",
            "LeafNodeText": name.split_once(' ').map(|(_, rest)| rest), "State": state,
            "Failure": { "Message": "because", "Location": { "FileName": "/some/where/a.go", "LineNumber": 7 } },
        })
    }

    fn verdict(specs: &[Value]) -> Verdict {
        let report = json!([{ "SpecReports": specs, "SpecialSuiteFailureReasons": null }]);
        judge(&parse(report.to_string().as_bytes()).unwrap(), EXPECTED)
    }

    #[test]
    fn a_clean_run_counts_and_has_no_complaint() {
        let before_all = json!({
            "ContainerHierarchyTexts": null, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed",
        });
        let run = [
            before_all,
            spec("Creates one", "passed"),
            spec("Lists a", "skipped"),
            spec("Lists b", "pending"),
        ];
        let clean = verdict(&run);
        assert_eq!(clean.line("mount"), "mount: 1 passed, 0 failed, 2 skipped");
        assert!(clean.complaints.is_empty());
    }

    #[test]
    fn everything_else_is_a_failure() {
        let (good, skipped) = (spec("Creates one", "passed"), spec("Lists a", "skipped"));
        let cases = [
            ("Creates two: failed: because (a.go:7)", spec("Creates two", "failed")),
            ("Creates two: timedout", spec("Creates two", "timedout")),
            ("Creates two: panicked", spec("Creates two", "panicked")),
            ("Creates two: skipped, and not expected", spec("Creates two", "skipped")),
            ("Lists b: ran, though it should be skipped for lack of LIST", spec("Lists b", "passed")),
            ("Lists b: failed", spec("Lists b", "failed")),
        ];
        for (complaint, case) in cases {
            let found = verdict(&[good.clone(), skipped.clone(), case]);
            assert_eq!((found.passed, found.failed, found.skipped), (1, 1, 1), "{complaint}");
            assert!(
                found.complaints.iter().any(|line| line.starts_with(complaint)),
                "{:?}",
                found.complaints
            );
        }
    }

    #[test]
    fn a_row_without_a_spec_and_a_run_without_a_pass_are_failures() {
        let found = verdict(&[]);
        assert_eq!(found.failed, 2, "{:?}", found.complaints);
    }
}
