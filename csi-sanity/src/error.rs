//! What can keep the suite from passing.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Why there is no pass.
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
    #[error("{program}: {status}\n{output}")]
    Failed { program: String, status: ExitStatus, output: String },
    /// A program did not end in time.
    #[error("{program} took over {limit:?}")]
    Slow { program: String, limit: Duration },
    /// A file or folder.
    #[error("cannot {what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    /// The suite's report is not what this program knows how to read.
    #[error("cannot read the suite's report")]
    Report(#[source] serde_json::Error),
    /// The suite ran, and something is wrong.
    #[error("{0}")]
    Verdict(String),
}

impl Error {
    /// For `map_err` on a file operation; `what` is a verb and its object.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what: what.into(), source }
    }
}
