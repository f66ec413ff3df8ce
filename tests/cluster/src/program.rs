//! Starting programs: to their end within a limit of time, or as a service that writes a log.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Error;

/// How much of a log is worth showing when its program has ended.
const LAST_LINES: usize = 25;

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
    let program = name(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| Error::Start { program: program.clone(), source })?;
    let run = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A program that reads nothing may be gone already; its exit status tells.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        child.wait_with_output().await
    };
    let output = timeout(limit, run)
        .await
        .map_err(|_| Error::Late { what: format!("{program} to end"), limit, seen: "it runs".to_owned() })?
        .map_err(Error::io(format!("wait for {program}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let written = text(&output.stdout) + &text(&output.stderr);
    Err(Error::Failed { program, end: output.status.to_string(), output: written })
}

fn name(command: &Command) -> String {
    Path::new(command.as_std().get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program that runs as long as the cluster does. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Service {
    /// Starts it. All that it writes goes to the end of its log.
    pub(crate) fn start(name: &str, command: &mut Command, log: PathBuf) -> Result<Service, Error> {
        let file = open_log(&log)?;
        let same = file.try_clone().map_err(Error::at("open", &log))?;
        let child = command
            .stdout(file)
            .stderr(same)
            .spawn()
            .map_err(|source| Error::Start { program: name.to_owned(), source })?;
        Ok(Service { name: name.to_owned(), child, log })
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
