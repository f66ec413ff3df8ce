//! Starting a supervisor.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use crate::Error;
use crate::running::Streams;
use crate::supervisor::Charge;

/// Starts the supervisor as the first process of a PID namespace, so that its guest cannot outlive it.
///
/// Without the right to make one (in a container, say) the supervisor still ends its guest, unless it is killed
/// itself; then its runner does, or the next run.
pub(crate) fn launch(binary: &Path, charge: &Charge, streams: Streams) -> Result<Child, Error> {
    let mut command = command(binary, charge, streams);
    // Leaving the namespace concerns the later children of one thread only, and this thread has just this one.
    let spawning = thread::spawn(move || {
        let _ = unshare(CloneFlags::CLONE_NEWPID);
        command.spawn()
    });
    spawning
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
        .map_err(Error::io("start the guest's supervisor"))
}

/// The supervisor's command line.
fn command(binary: &Path, charge: &Charge, streams: Streams) -> Command {
    let mut command = Command::new(binary);
    command
        .arg("supervise")
        .arg("--job")
        .arg(&charge.job)
        .arg("--owner")
        .arg(&charge.owner)
        .arg("--limit-ms")
        .arg(charge.limit.as_millis().to_string())
        .arg("--")
        .args(&charge.kernel)
        .stdin(Stdio::piped())
        .stdout(streams.stdio())
        .stderr(streams.stdio());
    command
}

/// The `lab` binary, which is supervisor and first process of every guest. Cargo puts it beside other
/// binaries, and beside the folder of the test binaries.
///
/// # Errors
///
/// [`Error::Missing`] when it has not been built.
pub(crate) fn lab_binary() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::io("find the running program"))?;
    if own.file_name().is_some_and(|name| name == "lab") {
        return Ok(own);
    }
    let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("lab"));
    beside.into_iter().find(|binary| binary.is_file()).ok_or_else(|| Error::Missing {
        what: format!("the program `lab` beside {}", own.display()),
        fix: "`cargo build -p lab` builds it",
    })
}
