use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::VolumeError;
use crate::types::LvUuid;

/// Lock files on the host, one per volume, named by the LV's UUID.
///
/// They keep apart what a map in memory cannot: two drivers at the same time during a roll-out, and a
/// driver from the mkfs that its killed predecessor left running, which holds the lock for as long as
/// it lives because it inherited the descriptor.
#[derive(Debug, Clone)]
pub(super) struct LockDir(PathBuf);

/// A volume's lock, held until this and every copy that a program inherited are gone.
#[derive(Debug)]
pub(super) struct VolumeLock {
    held: File,
    path: PathBuf,
}

/// How often a lock that another process holds is tried. The kernel cannot tell us when it is free
/// without a thread that waits for it, and such a thread could not be ended.
const RETRY: Duration = Duration::from_millis(50);

impl LockDir {
    pub(super) const fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// Waits for the volume's lock.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub(super) async fn take(&self, lv: &LvUuid) -> Result<VolumeLock, VolumeError> {
        loop {
            if let Some(lock) = self.try_take(lv).await? {
                return Ok(lock);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Takes the volume's lock if nobody has it.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub(super) async fn try_take(&self, lv: &LvUuid) -> Result<Option<VolumeLock>, VolumeError> {
        self.try_file(format!("{lv}.lock")).await
    }

    /// Takes the lock on the volume's growth if nobody has it: apart from the volume's own, since a volume
    /// is used while it grows.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub(super) async fn try_take_growth(&self, lv: &LvUuid) -> Result<Option<VolumeLock>, VolumeError> {
        self.try_file(format!("{lv}.growth.lock")).await
    }

    async fn try_file(&self, name: String) -> Result<Option<VolumeLock>, VolumeError> {
        let path = self.0.join(name);
        let shown = path.display().to_string();
        let taken = tokio::task::spawn_blocking(move || try_lock(&path)).await;
        let failed =
            |error: io::Error| VolumeError::host(format!("cannot take the lock file {shown}"), error);
        taken.map_err(io::Error::other).and_then(|taken| taken).map_err(failed)
    }

    /// Removes the lock files that nobody holds: a driver that was killed after it had removed a volume
    /// left the volume's behind. A lock that is wanted again makes its file anew.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) async fn sweep(&self) -> Result<(), VolumeError> {
        let dir = self.0.clone();
        let failed = |error: io::Error| VolumeError::host("cannot tidy the directory of lock files", error);
        let swept = tokio::task::spawn_blocking(move || sweep(&dir)).await;
        swept.map_err(io::Error::other).and_then(|swept| swept).map_err(failed)
    }
}

impl VolumeLock {
    /// A descriptor of the same lock, for a program to inherit.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub(super) fn share(&self) -> Result<File, VolumeError> {
        let failed = |error| VolumeError::host("cannot hand the volume's lock down to a program", error);
        self.held.try_clone().map_err(failed)
    }

    /// The lock, and what was found with it held. The file of a volume that is gone goes too.
    ///
    /// # Errors
    /// Those of `found`.
    pub(super) fn on<T>(self, found: Result<T, VolumeError>) -> Result<(Self, T), VolumeError> {
        match found {
            Ok(found) => Ok((self, found)),
            Err(error) => {
                if let VolumeError::NotFound(_) = error {
                    self.remove_file();
                }
                Err(error)
            }
        }
    }

    /// Removes the file with the lock still held: whoever waits for it sees that it is another's.
    pub(super) fn remove_file(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the lock file of a removed volume");
        }
    }
}

fn try_lock(path: &Path) -> io::Result<Option<VolumeLock>> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let file = File::options().create(true).truncate(false).write(true).read(true).open(path)?;
    // Never unlocked by hand: that would take the lock from a program that inherited it, too.
    match file.try_lock() {
        Ok(()) if is_at(&file, path) => Ok(Some(VolumeLock { held: file, path: path.to_owned() })),
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn sweep(dir: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        if let Some(lock) = try_lock(&entry?.path())? {
            lock.remove_file();
        }
    }
    Ok(())
}

/// Whether the file is still the one at the path, and not one that was removed meanwhile.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_is_held_until_the_last_copy_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (locks, lv) = (
            LockDir::new(dir.path().join("locks")),
            "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap(),
        );
        let first = locks.take(&lv).await.unwrap();
        let inherited = first.share().unwrap();
        drop(first);
        assert!(locks.try_take(&lv).await.unwrap().is_none());
        drop(inherited);
        assert!(locks.try_take(&lv).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn sweeping_leaves_the_locks_that_are_held() {
        let dir = tempfile::tempdir().unwrap();
        let locks = LockDir::new(dir.path().join("locks"));
        locks.sweep().await.unwrap();
        let [held, left] =
            ["Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4", "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns5"]
                .map(|uuid| uuid.parse().unwrap());
        let lock = locks.take(&held).await.unwrap();
        drop(locks.take(&left).await.unwrap());
        locks.sweep().await.unwrap();
        let files: Vec<_> = std::fs::read_dir(dir.path().join("locks")).unwrap().collect();
        assert_eq!(files.len(), 1);
        assert!(locks.try_take(&held).await.unwrap().is_none());
        drop(lock);
        assert!(locks.try_take(&held).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_removed_lock_file_locks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (locks, lv) =
            (LockDir::new(dir.path().to_owned()), "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap());
        locks.take(&lv).await.unwrap().remove_file();
        assert!(locks.try_take(&lv).await.unwrap().is_some());
    }
}
