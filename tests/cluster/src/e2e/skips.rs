//! The specs that do not run, and why.
//!
//! When Quarry comes to offer a capability, its rows go: until then each spec that a row names must be skipped, and no
//! other may be. A table in docs/e2e.md says the same.

use super::ginkgo::Spec;
use crate::Error;

/// Specs that are skipped together.
#[derive(Debug)]
pub(super) struct Skip {
    /// What stands in their names.
    pub(super) fragment: &'static str,
    /// Why they are skipped.
    pub(super) reason: &'static str,
}

const fn skip(fragment: &'static str, reason: &'static str) -> Skip {
    Skip { fragment, reason }
}

const SSH: &str = "logs in to the node by ssh, to stop its kubelet; the scenario restarts kills kubelets too";
const ONE_NODE: &str = "a volume is on one node for good";
const SNAPSHOTS: &str = "no snapshots yet";
const CLONES: &str = "no volumes made from others yet";
const OF_FILES: &str = "of mounted volumes only";

/// Specs that are not started.
pub(super) const LEFT_OUT: &[Skip] = &[
    skip("] disruptive ", SSH),
    skip("deleted while kubelet is down [LinuxOnly]", SSH),
    skip(
        "(default fs)] provisioning should provision storage with any volume data source",
        "needs images from elsewhere: volume-data-source-validator and hello-populator",
    ),
];

/// Specs that say themselves that they are not for this driver.
pub(super) const EXPECTED: &[Skip] = &[
    skip("retain data across pod recreation on different node", ONE_NODE),
    skip("should concurrently access the single volume from pods on different node", ONE_NODE),
    skip(
        "(filesystem volmode)] multiVolume should access to two volumes with different volume mode and retain data across pod recreation on the same node",
        "the same spec for raw block volumes has a mounted one too",
    ),
    skip("should concurrently access the volume and its clone", CLONES),
    skip("should concurrently access the volume and restored snapshot", SNAPSHOTS),
    skip("should provision storage with pvc data source", CLONES),
    skip("should provision storage with snapshot data source", SNAPSHOTS),
    skip("when restoring snapshot to larger size pvc", SNAPSHOTS),
    skip("(block volmode)] provisioning should provision storage with any volume data source", OF_FILES),
    skip("(block volmode)] provisioning should provision storage with mount options", OF_FILES),
    skip("(block volmode)] provisioning should mount multiple PV", OF_FILES),
    skip(
        "(block volmode) (late-binding)] ephemeral should create read-only inline ephemeral volume",
        OF_FILES,
    ),
    skip("] volume-modify ", "volumes cannot be modified yet"),
    skip(
        "(immediate-binding)] ephemeral ",
        "the suite runs them only for drivers without topology: with one the pod may be kept off the volume's node",
    ),
    skip("-performance ", "for classes with immediate binding only, and without a figure of what is good"),
];

/// Why a spec is not started, if so.
pub(super) fn left_out(name: &str) -> Option<&'static str> {
    reason(LEFT_OUT, name)
}

/// Why a spec is expected to skip itself, if so.
pub(super) fn expected(name: &str) -> Option<&'static str> {
    reason(EXPECTED, name)
}

fn reason(rows: &'static [Skip], name: &str) -> Option<&'static str> {
    rows.iter().find(|row| name.contains(row.fragment)).map(|row| row.reason)
}

/// Fails when a row fits no spec.
///
/// # Errors
///
/// [`Error::Other`] with those rows.
pub(super) fn check(specs: &[Spec]) -> Result<(), Error> {
    let fits = |row: &&Skip| specs.iter().any(|spec| spec.name.contains(row.fragment));
    let idle: Vec<_> =
        LEFT_OUT.iter().chain(EXPECTED).filter(|row| !fits(row)).map(|row| row.fragment).collect();
    if idle.is_empty() {
        return Ok(());
    }
    Err(Error::other(format!("expected to be skipped, but not in the suite: {}", idle.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::{EXPECTED, LEFT_OUT};

    #[test]
    fn the_page_has_every_row() {
        let page = include_str!("../../../../docs/e2e.md");
        for row in LEFT_OUT.iter().chain(EXPECTED) {
            let line = format!("| `{}` | {} |", row.fragment, row.reason);
            assert!(page.contains(&line), "docs/e2e.md lacks: {line}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, LEFT_OUT.len() + EXPECTED.len(), "docs/e2e.md has rows that are in no table");
    }
}
