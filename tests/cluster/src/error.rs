//! Why a cluster could not be had, or why a scenario did not pass.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Everything that can go wrong in and around a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program is missing or not executable.
    #[error("cannot start {program}")]
    Start {
        /// The program's name.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{program}: {end}\n{output}")]
    Failed {
        /// The program's name.
        program: String,
        /// How it ended.
        end: String,
        /// What it wrote, or the end of that.
        output: String,
    },
    /// Something that was waited for did not come about.
    #[error("waited {limit:?} for {what}; last seen: {seen}")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What there was instead.
        seen: String,
    },
    /// A file, a folder, or a system call.
    #[error("cannot {what}")]
    Io {
        /// What was about to be done.
        what: String,
        /// Why it could not be.
        #[source]
        source: io::Error,
    },
    /// The API server refused, or could not be asked.
    #[error("cannot {what}")]
    Api {
        /// What it was asked.
        what: String,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// A guest.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Names what an I/O error belongs to; for `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { what: what.into(), source: source.into() }
    }

    /// Like [`Error::io`], for an action on a path.
    pub(crate) fn at<E: Into<io::Error>>(what: &str, path: &Path) -> impl FnOnce(E) -> Error + use<E> {
        Error::io(format!("{what} {}", path.display()))
    }

    /// Names what the API server was asked; for `map_err`.
    pub fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Error {
        move |source| Error::Api { what: what.into(), source: Box::new(source) }
    }

    /// An error in words.
    pub fn other(words: impl Display) -> Error {
        Error::Other(words.to_string())
    }

    /// The message with all its causes.
    pub fn chain(&self) -> String {
        lab::chain(self)
    }
}
