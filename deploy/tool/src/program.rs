//! Starting programs.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::error::Error;

/// A program that reads nothing.
#[expect(clippy::disallowed_methods, reason = "a builder's own programs, none of the driver's")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs it to its end and returns its standard output, trimmed; a failure is an error that shows all it wrote.
pub(crate) fn succeed(command: &mut Command) -> Result<String, Error> {
    let output = command.output().map_err(|source| Error::Start { program: name(command), source })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let shown = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    Err(Error::Failed {
        command: format!("{} {shown}", name(command)),
        status: output.status,
        output: format!("{}\n{}", text(&output.stdout), text(&output.stderr)),
    })
}

/// Whether the program is there and ends well.
pub(crate) fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Removes a file that need not be there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at("remove", path)(error)),
        _ => Ok(()),
    }
}
