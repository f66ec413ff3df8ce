use super::home::SystemDir;
use super::process::Processes;
use super::{fields, parse};
use crate::lvm::{EngineError, PvRow};

/// Reports every physical volume, in a process of its own. Without `--foreign` and `--shared` LVM leaves
/// out groups of other systems and those under shared locking, and without `--all` the second device of
/// a disk that is there twice (tried on 2.03.16).
///
/// # Errors
/// Those of [`crate::lvm::Backend::look`].
pub(super) async fn look(processes: &Processes, dir: &SystemDir) -> Result<Vec<PvRow>, EngineError> {
    let options = format!("--options={}", [&fields::PV[..], &fields::VG].concat().join(","));
    let words = ["pvs", "--nolocking", "--foreign", "--shared", "--all", &options];
    let output = processes.query(dir, &words).await?;
    let command = || "look at every disk".to_owned();
    if output.code.is_none() {
        return Err(EngineError::Lost { command: command(), reason: output.stderr });
    }
    if !output.success() {
        // One disk that cannot be read must not hide the groups on the others.
        tracing::warn!(code = output.code, stderr = output.stderr, "lvm could not read everything");
    }
    let unreadable =
        |reason| EngineError::Unreadable { command: command(), reason: explained(reason, &output.stderr) };
    parse::look(&output.stdout).map_err(unreadable)
}

fn explained(reason: String, stderr: &str) -> String {
    if stderr.is_empty() { reason } else { format!("{reason} ({stderr})") }
}
