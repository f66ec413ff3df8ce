//! Programs that these tests start: our own, and those that the tests' clusters are made of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program of this workspace, which is built together with the tests.
pub(super) fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_quarry")).with_file_name(name);
    assert!(path.is_file(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// A program of the clusters of the tests: built if it has to be, which takes minutes on a cold machine. Where it
/// cannot be built, the test fails.
pub(super) fn cluster(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new(built("cluster")).arg("build").output().unwrap();
        assert!(output.status.success(), "cluster build: {}", String::from_utf8_lossy(&output.stderr));
    });
    let target = built("cluster").ancestors().nth(2).unwrap().to_owned();
    let path = target.join("cluster/bin").join(name);
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

/// What a program writes that is to end well.
pub(super) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The chart, rendered with these settings.
pub(super) fn rendered(arguments: &[&str]) -> String {
    let mut helm = Command::new(cluster("helm"));
    helm.args(["template", "quarry"]).arg(super::path("deploy/chart"));
    output(helm.args(["--namespace", "quarry-system"]).args(arguments))
}
