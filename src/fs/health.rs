use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{EACCES, EDQUOT, ENOSPC, EOPNOTSUPP, EPERM, O_TMPFILE};
use nix::sys::statvfs::{FsFlags, fstatvfs};

use super::FsError;
use super::gauge::GAUGE;

/// Whether a mounted file system still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answers, and takes what is written to it.
    Alive,
    /// It is shut down, its journal was aborted, or its disk is gone: in words.
    Dead(String),
    /// It does not answer in time: its disk has very much to do, or hangs. In words.
    Silent(String),
}

/// Whether the file system at a mount point still works. It costs a flush of the disk, and takes five
/// seconds at most.
pub async fn health(mount_point: &Path) -> Health {
    match GAUGE.ask(mount_point, |path| Ok(now(path))).await {
        Ok(health) => health,
        Err(silent @ FsError::Overdue { .. }) => Health::Silent(silent.to_string()),
        Err(error) => Health::Dead(error.to_string()),
    }
}

/// Asks the file system itself. It looks the same in the mount table, and statfs(2) works, long after its
/// journal was aborted. What tells is work that needs the journal: a nameless file (open(2),
/// `O_TMPFILE`), which is never seen and gone at once; and, where nothing may be written, a flush of the
/// root folder (fsync(2)), without anything to write.
fn now(mount_point: &Path) -> Health {
    match try_it(mount_point) {
        Ok(()) => Health::Alive,
        // Whoever is refused was answered.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Health::Alive,
        Err(error) => {
            Health::Dead(format!("{}: the file system does not work: {error}", mount_point.display()))
        }
    }
}

fn try_it(mount_point: &Path) -> io::Result<()> {
    let root = File::open(mount_point)?;
    let may_write = !fstatvfs(&root)?.flags().contains(FsFlags::ST_RDONLY);
    if may_write {
        let file = OpenOptions::new().write(true).custom_flags(O_TMPFILE).mode(0o600).open(mount_point);
        match file {
            Ok(_) => {}
            Err(error) if is_no_sign(&error) => {}
            Err(error) => return Err(error),
        }
    }
    root.sync_all()
}

/// Whether a file system that refuses to make a file so may live: it is full, or full for us; it cannot do this; or its
/// user lets nobody change its root folder (chattr(1), `i`).
fn is_no_sign(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(ENOSPC | EDQUOT | EOPNOTSUPP | EPERM | EACCES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_living_file_system_is_alive() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(health(folder.path()).await, Health::Alive);
        assert!(matches!(health(Path::new("/nonexistent")).await, Health::Dead(_)));
    }
}
