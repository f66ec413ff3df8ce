//! What the driver's account has asked of the API server, as that records it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

use crate::Error;
use crate::driver::NAMESPACE;
use crate::paths::{self, Paths};

/// The account of the driver's controller and its sidecars.
const ACCOUNT: &str = "quarry-controller";

/// The record of the requests of the driver's account.
#[derive(Debug)]
pub(crate) struct Audit {
    log: PathBuf,
}

/// A place in the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

/// How many requests each program has made, by what they were.
pub(crate) type Requests = BTreeMap<String, BTreeMap<String, usize>>;

impl Audit {
    /// That of the cluster with these paths.
    pub(crate) fn of(paths: &Paths) -> Audit {
        Audit { log: paths.logs().join("audit.log") }
    }

    /// The API server's flags for it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when its policy cannot be written.
    pub(crate) fn flags(&self, paths: &Paths) -> Result<[String; 2], Error> {
        let policy = paths.run().join("audit-policy.yaml");
        let text = format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules:\n  \
             - {{level: Metadata, users: ['system:serviceaccount:{NAMESPACE}:{ACCOUNT}']}}\n  - {{level: None}}\n"
        );
        paths::write(&policy, text)?;
        Ok([
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ])
    }

    /// Where the record ends now.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when there is none.
    pub(crate) fn mark(&self) -> Result<Mark, Error> {
        let about = std::fs::metadata(&self.log).map_err(Error::at("look at", &self.log))?;
        Ok(Mark(about.len()))
    }

    /// What was asked since then, but for watches, which ask once for many answers, and leases, which are renewed
    /// whatever happens.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the record cannot be read.
    pub(crate) fn since(&self, mark: Mark) -> Result<Requests, Error> {
        let mut text = String::new();
        let mut file = File::open(&self.log).map_err(Error::at("open", &self.log))?;
        file.seek(SeekFrom::Start(mark.0)).map_err(Error::at("read", &self.log))?;
        file.read_to_string(&mut text).map_err(Error::at("read", &self.log))?;
        Ok(counted(&text))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    user_agent: Option<String>,
    object_ref: Option<ObjectRef>,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
}

fn counted(text: &str) -> Requests {
    let mut requests = Requests::new();
    // The last line may be a part of one.
    for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        let resource = line.object_ref.map(|object| object.resource).unwrap_or_default();
        if line.verb == "watch" || resource == "leases" {
            continue;
        }
        let what = format!("{} {resource}", line.verb);
        *requests.entry(program(line.user_agent.as_deref())).or_default().entry(what).or_default() += 1;
    }
    requests
}

/// Each says who it is: `csi-provisioner/v6.4.0 (linux/amd64) …`, and the driver `quarry/0.1.0`.
fn program(agent: Option<&str>) -> String {
    let name = agent.unwrap_or_default().split('/').next().filter(|name| !name.is_empty());
    name.unwrap_or("nobody").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_program_and_kind_without_watches_and_leases() {
        let line = |agent: &str, verb: &str, resource: &str| {
            format!(
                r#"{{"verb":"{verb}","userAgent":"{agent}","objectRef":{{"resource":"{resource}"}},"x":1}}"#
            )
        };
        let text = [
            line("csi-provisioner/v6 (linux)", "create", "persistentvolumes"),
            line("csi-provisioner/v6 (linux)", "create", "persistentvolumes"),
            line("csi-provisioner/v6 (linux)", "watch", "nodes"),
            line("csi-resizer/v2", "update", "leases"),
            line("quarry/0.1.0", "patch", "nodes"),
            line("", "get", "nodes"),
            r#"{"verb":"get","objec"#.to_owned(),
        ];
        let requests = counted(&text.join("\n"));
        let of = |program: &str, what: &str| requests.get(program).and_then(|all| all.get(what)).copied();
        assert_eq!(of("csi-provisioner", "create persistentvolumes"), Some(2));
        assert_eq!(of("quarry", "patch nodes"), Some(1));
        assert_eq!(of("nobody", "get nodes"), Some(1));
        assert_eq!((requests.len(), requests["csi-provisioner"].len()), (3, 1));
    }
}
