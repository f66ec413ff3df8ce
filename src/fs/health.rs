use std::fs::File;
use std::path::Path;

use nix::sys::statvfs::fstatvfs;

use super::gauge::GAUGE;

/// Whether a mounted file system still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answers, and takes what is written to it.
    Alive,
    /// It is shut down, its journal was aborted, its disk is gone, or it does not answer: in words.
    Dead(String),
}

/// Whether the file system at a mount point still works. It costs a flush of the disk at most, and takes
/// five seconds at most.
pub async fn health(mount_point: &Path) -> Health {
    let asked = GAUGE.ask(mount_point, |path| Ok(now(path))).await;
    asked.unwrap_or_else(|error| Health::Dead(error.to_string()))
}

/// Asks the file system itself. A mount looks the same in the mount table, and statfs(2) works, long
/// after its journal was aborted: what tells is fsync(2), here of the root folder. It gives EROFS or EIO
/// then, and without changes to write it is cheap. A file system that is mounted read-only takes it too.
fn now(mount_point: &Path) -> Health {
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
