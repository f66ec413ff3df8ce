//! The specs that may be skipped, and why.
//!
//! When quarry comes to offer a capability, its rows go: until then each spec that a row names must be skipped,
//! and no other may be.

/// Specs that are skipped together.
pub(crate) struct Skip {
    /// How their full names begin. The first row that fits a spec counts.
    pub(crate) specs: &'static str,
    /// The capability that would make them run; `-` if none would.
    pub(crate) capability: &'static str,
    /// Why quarry does not offer it.
    pub(crate) reason: &'static str,
}

const fn skip(specs: &'static str, capability: &'static str, reason: &'static str) -> Skip {
    Skip { specs, capability, reason }
}

const NEVER_ATTACHED: &str = "a local volume is never attached to a node: it is there or it is not";
const LATER: &str = "not built yet";

/// All expected skips.
pub(crate) const EXPECTED: &[Skip] = &[
    skip(
        "Controller Service [Controller Server] ListVolumes pagination",
        "-",
        "the suite itself has switched this one off",
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should create volume from an existing source snapshot",
        "CREATE_DELETE_SNAPSHOT",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should fail when the volume source snapshot is not found",
        "CREATE_DELETE_SNAPSHOT",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should create volume from an existing source volume",
        "CLONE_VOLUME",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should fail when the volume source volume is not found",
        "CLONE_VOLUME",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should create volume with a volume attribute class",
        "MODIFY_VOLUME",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] CreateVolume should not create volume with an invalid volume attribute class",
        "MODIFY_VOLUME",
        LATER,
    ),
    skip(
        "Controller Service [Controller Server] ControllerPublishVolume",
        "PUBLISH_UNPUBLISH_VOLUME",
        NEVER_ATTACHED,
    ),
    skip(
        "Controller Service [Controller Server] ControllerUnpublishVolume",
        "PUBLISH_UNPUBLISH_VOLUME",
        NEVER_ATTACHED,
    ),
    skip(
        "Controller Service [Controller Server] volume lifecycle",
        "PUBLISH_UNPUBLISH_VOLUME",
        NEVER_ATTACHED,
    ),
    skip("CreateSnapshot [Controller Server]", "CREATE_DELETE_SNAPSHOT", LATER),
    skip("DeleteSnapshot [Controller Server]", "CREATE_DELETE_SNAPSHOT", LATER),
    skip("ListSnapshots [Controller Server]", "LIST_SNAPSHOTS", LATER),
    skip("GetSnapshot [Controller Server]", "GET_SNAPSHOT", "alpha, and no sidecar calls it yet"),
    skip("ModifyVolume [Controller Server]", "MODIFY_VOLUME", LATER),
    skip("GroupController Service [GroupController", "GROUP_CONTROLLER_SERVICE", LATER),
];

#[cfg(test)]
mod tests {
    use super::EXPECTED;

    #[test]
    fn the_readme_has_every_row() {
        let readme = include_str!("../README.md");
        for row in EXPECTED {
            let line = format!("| `{}` | {} | {} |", row.specs, row.capability, row.reason);
            assert!(readme.contains(&line), "README.md lacks: {line}");
        }
        let rows = readme.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, EXPECTED.len(), "README.md has rows that are in no table");
    }
}
