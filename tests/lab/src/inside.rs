//! What a test's code can do inside the guest.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Error, messages};

/// The job's disks, separated by colons.
pub(crate) const DISKS: &str = "LAB_DISKS";
/// The job's folder, where the job sees it.
pub(crate) const FOLDER: &str = "LAB_FOLDER";
/// Which `boot` of which machine a guest is to run: `<machine>.<boot>`, counted from 0.
pub(crate) const STEP: &str = "LAB_STEP";
/// A message: the closure of this guest has returned.
pub(crate) const PASSED: &str = "closure-passed";

/// On this console the guest asks its supervisor for a power cut.
const SIGNAL: &str = "/dev/tty3";

/// How long a power cut may take to come.
const CUT_PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    static MACHINES: Cell<usize> = const { Cell::new(0) };
}

/// The number of machines that this test (each has a thread of its own) has made before.
pub(crate) fn count_machine() -> usize {
    MACHINES.replace(MACHINES.get() + 1)
}

/// The step that this process is to run, if it is a guest's job.
pub(crate) fn step() -> Option<String> {
    std::env::var(STEP).ok()
}

/// Whether this process is a test's job inside a guest.
pub fn is_guest() -> bool {
    step().is_some()
}

/// The paths of the machine's disks, in the order in which they were added. Empty outside a job.
pub fn disks() -> Vec<PathBuf> {
    let disks = std::env::var(DISKS).unwrap_or_default();
    disks.split(':').filter(|disk| !disk.is_empty()).map(PathBuf::from).collect()
}

/// The job's folder.
fn folder() -> Result<PathBuf, Error> {
    let folder =
        std::env::var_os(FOLDER).ok_or_else(|| Error::Invalid("this is no job of a guest".to_owned()))?;
    Ok(PathBuf::from(folder))
}

/// Tells the host `message`, a plain word; [`crate::Running::wait_for`] waits for it.
///
/// # Errors
///
/// [`Error::Invalid`] outside a guest, or when `message` is not a plain word; [`Error::Io`] when it cannot be left.
pub fn tell(message: &str) -> Result<(), Error> {
    messages::leave(&folder()?, message)
}

/// Waits until the host has told `message` with [`crate::Running::tell`].
///
/// # Errors
///
/// [`Error::Invalid`] outside a guest, or when the host has not told it within `patience`.
pub fn wait_for(message: &str, patience: Duration) -> Result<(), Error> {
    messages::wait_for(&folder()?, message, patience)
}

/// Cuts the power of the machine that this process runs on. What the kernel has not written to the disks is lost.
///
/// # Panics
///
/// When this is no guest, or the power stays on.
pub fn power_cut() -> ! {
    let asked = fs::OpenOptions::new()
        .write(true)
        .open(Path::new(SIGNAL))
        .and_then(|mut line| line.write_all(b"cut\n"));
    if let Err(error) = asked {
        panic!("cannot ask for a power cut: {error}");
    }
    std::thread::sleep(CUT_PATIENCE);
    panic!("the power stayed on for {CUT_PATIENCE:?} after it should have been cut");
}
