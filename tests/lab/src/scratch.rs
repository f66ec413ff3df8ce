//! Temporary folders that are swept up even when their owner was killed.
//!
//! Each folder holds a lock file that its owner keeps locked. The kernel drops the lock when the owner dies, however it
//! dies, so an unlocked folder belongs to nobody and the next run removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;
use crate::strays::kill_guests_of;

const LOCK: &str = "lock";

/// A folder that is removed when this value is dropped, or by a later run.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Sweeps what dead runs have left and makes a new folder.
    pub(crate) fn create() -> Result<Scratch, Error> {
        let root = root()?;
        // Held so that nobody sweeps the new folder before its own lock is taken.
        let _turn = lock(&root.join(LOCK))?;
        sweep(&root)?;
        let folder = tempfile::Builder::new()
            .prefix("")
            .tempdir_in(&root)
            .map_err(Error::at("make a folder in", &root))?;
        let lock = lock(&folder.path().join(LOCK))?;
        Ok(Scratch { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes all folders whose owners are dead.
///
/// # Errors
///
/// [`Error::Io`] when the folder of folders cannot be read or made.
pub fn sweep_leftovers() -> Result<(), Error> {
    let root = root()?;
    let _turn = lock(&root.join(LOCK))?;
    sweep(&root)
}

/// The folder that all scratch folders of this user lie in.
///
/// The user's number is in its name: two users on one machine cannot write into each other's.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let root = std::env::temp_dir().join(format!("quarry-lab-{}", nix::unistd::getuid()));
    let text = root.to_string_lossy();
    // These end a path on the kernel's command line or in a disk's description; and a guest has its own /dev.
    let special = |c: char| c.is_whitespace() || ",:\"".contains(c) || c == char::REPLACEMENT_CHARACTER;
    if text.contains(special) || root.starts_with("/dev") || !root.is_absolute() {
        let fix = "set TMPDIR to a folder with a plain absolute name outside /dev";
        return Err(Error::Invalid(format!("the lab cannot work in {text:?}: {fix}")));
    }
    match fs::DirBuilder::new().mode(0o700).create(&root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::at("make", &root)(error)),
        _ => Ok(root),
    }
}

fn lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::at("make", path))?;
    file.lock().map_err(Error::at("lock", path))?;
    Ok(file)
}

fn sweep(root: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(root).map_err(Error::at("read", root))?.flatten() {
        let path = entry.path();
        if path.is_dir() && is_abandoned(&path) {
            kill_guests_of(&path);
            remove(&path)?;
        }
    }
    Ok(())
}

/// Whether nobody holds the folder's lock. A folder without a lock file is one that is half removed.
fn is_abandoned(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).map_or(true, |file| file.try_lock().is_ok())
}

/// Removes a folder; one that somebody else has removed meanwhile is fine.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at("remove", folder)(error)),
        _ => Ok(()),
    }
}
