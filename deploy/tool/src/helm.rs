//! Helm, built from the Go module that pins all programs of the tests' clusters.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::program::{command, succeed};
use crate::say;

const MODULE: &str = "tests/cluster/go";
const PACKAGE: &str = "helm.sh/helm/v4/cmd/helm";

/// Helm's path. Go itself sees whether there is anything to build: minutes on a cold machine, else a moment.
///
/// # Errors
/// Go's own.
pub(crate) fn build(root: &Path) -> Result<PathBuf, Error> {
    let path = root.join("target/tools/helm");
    say("build helm");
    let mut go = command("go");
    go.current_dir(root.join(MODULE)).env("CGO_ENABLED", "0");
    go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"]).arg(&path);
    succeed(go.arg(PACKAGE))?;
    Ok(path)
}
