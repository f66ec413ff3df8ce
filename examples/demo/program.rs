//! Programs that a person would type.

#![expect(clippy::disallowed_methods, reason = "the demo's own programs, none of the driver's")]

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::error::Error;

/// A program in plain English.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Runs a line of shell, which must succeed, and gives what it printed.
pub(crate) fn shell(line: &str) -> Result<String, Error> {
    let output = command("sh").arg("-c").arg(line).output().map_err(Error::io("start a shell"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(Error::Program { command: line.to_owned(), status: output.status, output: text(&output.stderr) })
}
