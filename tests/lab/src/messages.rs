//! Words that a test on the host and its job in the guest tell each other: empty files in the job's folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, job};

/// How often to look. The folder is on two kernels at once, so neither can tell the other of a change.
const PAUSE: Duration = Duration::from_millis(5);

/// Leaves a message for the other side.
pub(crate) fn leave(folder: &Path, message: &str) -> Result<(), Error> {
    let path = path(folder, message)?;
    File::create(&path).map(drop).map_err(Error::at("leave the message", &path))
}

/// Waits until the other side has left a message. Ends early when the guest ends without it.
pub(crate) fn wait_for(folder: &Path, message: &str, patience: Duration) -> Result<(), Error> {
    let path = path(folder, message)?;
    let ending = folder.join(job::ENDING);
    let deadline = Instant::now() + patience;
    loop {
        // In this order: what a guest tells before its end has been told.
        let (ended, late) = (ending.exists(), Instant::now() > deadline);
        if path.exists() {
            return Ok(());
        }
        if ended {
            return Err(Error::Invalid(format!("the guest ended and did not tell {message:?}")));
        }
        if late {
            return Err(Error::Invalid(format!("nobody told {message:?} within {patience:?}")));
        }
        thread::sleep(PAUSE);
    }
}

fn path(folder: &Path, message: &str) -> Result<PathBuf, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if message.is_empty() || !message.chars().all(plain) {
        return Err(Error::Invalid(format!("{message:?} is not a plain word")));
    }
    Ok(folder.join(job::MESSAGES).join(message))
}

/// Whether a message has been left.
pub(crate) fn is_left(folder: &Path, message: &str) -> bool {
    folder.join(job::MESSAGES).join(message).exists()
}
