//! Starting programs, each with a limit of time.

use std::ffi::OsStr;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::error::Error;

/// A program that ends with us.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a test tool's own programs, none of the driver's")]
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    command
}

/// Runs it to its end; a failure is an error that shows its output.
pub(crate) async fn succeed(mut command: Command, limit: Duration) -> Result<String, Error> {
    let program = name(&command);
    let output = timeout(limit, command.output())
        .await
        .map_err(|_| Error::Slow { program: program.clone(), limit })?
        .map_err(|source| Error::Start { program: program.clone(), source })?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let output_text = text(&output.stdout) + &text(&output.stderr);
    Err(Error::Failed { program, status: output.status, output: output_text })
}

/// Starts it.
pub(crate) fn start(command: &mut Command) -> Result<Child, Error> {
    let program = name(command);
    command.spawn().map_err(|source| Error::Start { program, source })
}

/// Waits for its end.
pub(crate) async fn end(child: &mut Child, program: &str, limit: Duration) -> Result<ExitStatus, Error> {
    timeout(limit, child.wait())
        .await
        .map_err(|_| Error::Slow { program: program.to_owned(), limit })?
        .map_err(Error::io(format!("wait for {program}")))
}

fn name(command: &Command) -> String {
    command.as_std().get_program().to_string_lossy().into_owned()
}
