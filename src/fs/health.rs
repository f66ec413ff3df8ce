use std::fs::File;
use std::path::Path;

use nix::sys::statvfs::fstatvfs;

/// Whether a mounted file system still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answers, and takes what is written to it.
    Alive,
    /// It is shut down, its journal was aborted, its disk is gone, or it does not answer: in words.
    Dead(String),
}

/// Asks the file system itself. A mount looks the same in the mount table, and statfs(2) works, long
/// after its journal was aborted: what tells is fsync(2), here of the root folder. It gives EROFS or EIO
/// then, and without changes to write it is cheap. A file system that is mounted read-only takes it too.
pub(super) fn now(mount_point: &Path) -> Health {
    let asked = File::open(mount_point).and_then(|root| {
        fstatvfs(&root)?;
        root.sync_all()
    });
    match asked {
        Ok(()) => Health::Alive,
        Err(error) => {
            Health::Dead(format!("{}: the file system does not work: {error}", mount_point.display()))
        }
    }
}
