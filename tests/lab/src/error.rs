//! Why a machine could not be used, or why it did not end as it should.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::Output;

/// Everything that can go wrong on the host's side of the lab.
///
/// A job that ran to its end is no error, whatever its exit status.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program or file that the lab needs is not on this machine.
    #[error("the lab cannot run: {what} is missing; {fix}")]
    Missing {
        /// What was looked for.
        what: String,
        /// The command that brings it.
        fix: &'static str,
    },
    /// The caller asked for something that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A system call of the lab itself failed.
    #[error("lab: cannot {action}")]
    Io {
        /// What the lab was about to do.
        action: String,
        /// Why it could not.
        #[source]
        source: io::Error,
    },
    /// The guest's kernel ended before the job did: it panicked, crashed or could not start.
    #[error("the guest died before its job ended; its kernel's last words:\n{kernel_log}")]
    Died {
        /// The end of the guest kernel's log.
        kernel_log: String,
        /// What the job had written until then.
        output: Box<Output>,
    },
    /// The job did not end in time and the guest was killed.
    #[error("the job did not end within {limit:?} and its guest was killed")]
    TimedOut {
        /// The limit that ran out.
        limit: Duration,
        /// What the job had written until then.
        output: Box<Output>,
    },
    /// The job did not end in time because the guest's kernel stood still, which is no fault of the job.
    #[error("the guest hung and was killed after {limit:?}; its kernel's last words:\n{kernel_log}")]
    Hung {
        /// The limit that ran out.
        limit: Duration,
        /// The end of the guest kernel's log.
        kernel_log: String,
        /// What the job had written until then.
        output: Box<Output>,
    },
}

impl Error {
    /// Names the action and the path that an I/O error belongs to; to be used with `map_err`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let action = action.into();
        move |source| Error::Io { action, source }
    }

    /// Like [`Error::io`], for an action on a path.
    pub(crate) fn at(action: &str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::io(format!("{action} {}", path.display()))
    }

    /// What the job had written, if the guest failed while it ran.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Error::Died { output, .. } | Error::TimedOut { output, .. } | Error::Hung { output, .. } => {
                Some(output)
            }
            _ => None,
        }
    }

    /// The error and its causes in one line.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
