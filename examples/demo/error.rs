use std::io;
use std::process::ExitStatus;

use tonic::Status;

/// Why the demo did not get to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The guest, or this machine.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A file, a folder or a process.
    #[error("cannot {what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    /// The driver could not be spoken to.
    #[error("cannot speak to the driver")]
    Transport(#[from] tonic::transport::Error),
    /// A program that looks or writes.
    #[error("`{command}` failed ({status}): {output}")]
    Program { command: String, status: ExitStatus, output: String },
    /// The driver refused what it should have done, or failed.
    #[error("{method} answered {code}: {message}")]
    Rpc { method: &'static str, code: String, message: String },
    /// Something is not as it should be.
    #[error("{0}")]
    Wrong(String),
}

impl Error {
    /// For `map_err`; `what` is a verb and its object.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    pub(crate) fn rpc(method: &'static str, status: &Status) -> Self {
        Self::Rpc { method, code: code(status), message: status.message().to_owned() }
    }
}

/// An error with `message`, unless `holds`.
pub(crate) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Wrong(message())) }
}

/// The status' code as the specification writes it: `RESOURCE_EXHAUSTED`.
pub(crate) fn code(status: &Status) -> String {
    let mut text = String::new();
    for letter in format!("{:?}", status.code()).chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}
