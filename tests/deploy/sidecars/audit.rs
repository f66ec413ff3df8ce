//! The API server's log of who asked what (audit.k8s.io/v1): one JSON object a line, one line a request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// API group and resource: the verbs.
type Verbs = BTreeMap<(String, String), BTreeSet<String>>;

/// The requests of a program that are about objects.
fn requests<'a>(log: &'a str, program: &'a str) -> impl Iterator<Item = Value> + 'a {
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(move |request| {
        let agent = request["userAgent"].as_str().unwrap_or_default();
        agent.split('/').next() == Some(program) && request["objectRef"].is_object()
    })
}

/// All that the program asked for.
pub(super) fn asked(log: &str, program: &str) -> Verbs {
    let mut verbs = Verbs::new();
    for request in requests(log, program) {
        let about = |field: &str| request["objectRef"][field].as_str().unwrap_or_default().to_owned();
        let resource = match about("subresource") {
            part if part.is_empty() => about("resource"),
            part => format!("{}/{part}", about("resource")),
        };
        let verb = request["verb"].as_str().unwrap().to_owned();
        verbs.entry((about("apiGroup"), resource)).or_default().insert(verb);
    }
    verbs
}

/// What it was not allowed.
pub(super) fn refused(log: &str, program: &str) -> Vec<String> {
    let refused = requests(log, program).filter(|request| request["responseStatus"]["code"] == 403);
    refused.map(|request| request.to_string()).collect()
}
