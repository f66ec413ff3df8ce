//! What can go wrong.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program is missing or not executable.
    #[error("cannot start {program}")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{command}: {status}\n{output}")]
    Failed { command: String, status: ExitStatus, output: String },
    /// A file or folder.
    #[error("cannot {what} {path}")]
    Io {
        what: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// For `map_err` on a file operation; `what` is a verb.
    pub(crate) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.display().to_string();
        move |source| Error::Io { what, path, source }
    }
}

/// The message with all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
