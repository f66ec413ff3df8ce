//! Starting programs: to their end within a limit of time, or as a daemon that writes a log.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Error;

/// How much of a log is worth showing when its program has ended.
const LAST_LINES: usize = 25;

/// How long a daemon may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(15);

/// A program that ends with us.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs it to its end and returns its standard output; a failure is an error that shows all that it wrote.
pub(crate) async fn succeed(command: &mut Command, limit: Duration) -> Result<String, Error> {
    succeed_with(command, limit, "").await
}

/// Like [`succeed`], for a program that reads `input`.
pub(crate) async fn succeed_with(
    command: &mut Command,
    limit: Duration,
    input: &str,
) -> Result<String, Error> {
    let output = finish(command, limit, input).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let written = text(&output.stdout) + &text(&output.stderr);
    Err(Error::Failed { program: name(command), end: output.status.to_string(), output: written })
}

/// Runs it to its end, whatever that is. It does not outlive its limit.
pub(crate) async fn finish(command: &mut Command, limit: Duration, input: &str) -> Result<Output, Error> {
    let program = name(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| Error::Start { program: program.clone(), source })?;
    let run = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A program that reads nothing may be gone already, which is no failure of ours.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        child.wait_with_output().await
    };
    timeout(limit, run)
        .await
        .map_err(|_| Error::Late { what: format!("{program} to end"), limit, seen: "it runs".to_owned() })?
        .map_err(Error::io(format!("wait for {program}")))
}

fn name(command: &Command) -> String {
    Path::new(command.as_std().get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program that runs until it is ended. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it. All that it writes goes to the end of its log.
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Result<Daemon, Error> {
        let name = name(command);
        let file = open_log(&log)?;
        let same = file.try_clone().map_err(Error::at("open", &log))?;
        let started = command.stdout(file).stderr(same).spawn();
        let child = started.map_err(|source| Error::Start { program: name.clone(), source })?;
        Ok(Daemon { name, child, log })
    }

    /// Fails when it has ended, with its last words.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait().map_err(Error::io(format!("look after {}", self.name)))? {
            None => Ok(()),
            Some(status) => Err(Error::Failed {
                program: self.name.clone(),
                end: format!("ended unasked, {status}"),
                output: last_lines(&self.log),
            }),
        }
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Ends it with a signal, and insists when it does not follow.
    pub(crate) async fn end(mut self, signal: Signal) -> Result<(), Error> {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended by itself, which is as well.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.child.kill().await.map_err(Error::io(format!("kill {}", self.name)))?;
        }
        Ok(())
    }
}

/// Opens a log so that everybody who writes adds to its end.
pub(crate) fn open_log(path: &Path) -> Result<File, Error> {
    OpenOptions::new().create(true).append(true).open(path).map_err(Error::at("open", path))
}

/// The end of a log.
pub(crate) fn last_lines(log: &Path) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<_> = text.lines().collect();
    lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n")
}
