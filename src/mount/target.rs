use std::fs::{self, DirBuilder, FileType, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{MountError, blocking};
use crate::types::TargetPath;

/// How long a look at a path of ours may take. All of them lie on the node's own disks.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a look at `path` on a thread that is left to itself when it takes too long.
pub(super) async fn within<T: Send + 'static>(
    path: PathBuf,
    look: impl FnOnce() -> Result<T, MountError> + Send + 'static,
) -> Result<T, MountError> {
    let overdue = |_| MountError::Overdue { path, limit: PATIENCE };
    tokio::time::timeout(PATIENCE, blocking(look)).await.map_err(overdue)?
}

/// The target as the kernel writes it in the mount table: without symbolic links in the folders above
/// it (some distributions make /var/lib/kubelet one). The last component is not followed, and a mount
/// there is not touched. `None` if the folder above does not exist, so that nothing is mounted there.
pub(super) async fn resolve(target: &TargetPath) -> Result<Option<PathBuf>, MountError> {
    let (parent, name) = (target.parent().to_owned(), target.name().to_owned());
    within(target.to_path(), move || match fs::canonicalize(&parent) {
        Ok(parent) => Ok(Some(parent.join(name))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(MountError::io(&parent, "cannot be looked at", error)),
    })
    .await
}

/// The same, for a target that is about to be mounted or used.
pub(super) async fn resolve_existing(target: &TargetPath) -> Result<PathBuf, MountError> {
    let missing = || MountError::io(target.parent(), "cannot be found", ErrorKind::NotFound);
    resolve(target).await?.ok_or_else(missing)
}

/// A path of ours without any symbolic link.
pub(super) async fn resolve_all(path: &TargetPath) -> Result<PathBuf, MountError> {
    let path = path.to_path();
    within(path.clone(), move || {
        fs::canonicalize(&path).map_err(|source| MountError::io(&path, "cannot be looked at", source))
    })
    .await
}

/// Makes the folder that a file system is to be mounted on; one that is there stays. The folder above
/// it must exist: the kubelet makes it.
///
/// # Errors
/// Something else is there (a symbolic link too), or it cannot be made.
pub async fn make_dir(target: &TargetPath) -> Result<(), MountError> {
    make(target, "a folder", FileType::is_dir, |path| DirBuilder::new().mode(0o750).create(path)).await
}

/// Makes the empty file that a block device is to be bound on; one that is there stays, and so does a
/// device that is bound there already.
///
/// # Errors
/// Something else is there (a symbolic link too), or it cannot be made.
pub async fn make_file(target: &TargetPath) -> Result<(), MountError> {
    let fits = |found: &FileType| found.is_file() || found.is_block_device();
    let create =
        |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o640).open(path).map(drop);
    make(target, "a file", fits, create).await
}

async fn make(
    target: &TargetPath,
    expected: &'static str,
    fits: fn(&FileType) -> bool,
    create: fn(&Path) -> std::io::Result<()>,
) -> Result<(), MountError> {
    let target = target.to_path();
    within(target.clone(), move || match create(&target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = kind(&target)?;
            if found.as_ref().is_some_and(fits) {
                return Ok(());
            }
            let found = found.map_or("gone again", words);
            Err(MountError::WrongKind { target, expected, found })
        }
        Err(error) => Err(MountError::io(&target, "cannot be made", error)),
    })
    .await
}

/// Takes away the folder or file that a volume was mounted on; nothing there is fine. It must be empty,
/// and nothing may be mounted there: whatever is in it is not ours to remove.
///
/// # Errors
/// It is not empty, still a mount, or no folder and no file.
pub async fn remove(target: &TargetPath) -> Result<(), MountError> {
    let target = target.to_path();
    within(target.clone(), move || remove_now(&target)).await
}

fn remove_now(target: &Path) -> Result<(), MountError> {
    let wrong = |found| MountError::WrongKind {
        target: target.to_owned(),
        expected: "an empty folder or file",
        found,
    };
    let Some(found) = kind(target)? else { return Ok(()) };
    let removed = if found.is_dir() {
        fs::remove_dir(target)
    } else if found.is_file() {
        let length = fs::symlink_metadata(target).map_or(0, |found| found.len());
        if length > 0 {
            return Err(wrong("a file with something in it"));
        }
        fs::remove_file(target)
    } else {
        return Err(wrong(words(found)));
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            Err(wrong("a folder with something in it"))
        }
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            Err(MountError::Busy { target: target.to_owned() })
        }
        ended => ended.map_err(|source| MountError::io(target, "cannot be removed", source)),
    }
}

/// What is at a path, symbolic links not followed; `None` if there is nothing.
fn kind(path: &Path) -> Result<Option<FileType>, MountError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.file_type())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(MountError::io(path, "cannot be looked at", error)),
    }
}

fn words(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_file() {
        "a file"
    } else if found.is_symlink() {
        "a symbolic link"
    } else if found.is_block_device() {
        "a block device"
    } else {
        "a special file"
    }
}
