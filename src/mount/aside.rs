use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MsFlags, mount};

use super::flags::of_mount;
use super::target::PATIENCE;
use super::unmount::detach_now;
use super::{MountError, MountTable, blocking};

/// How often a place that another publish is at is tried: the kernel cannot tell when its lock is free without a thread
/// that waits for it.
const RETRY: Duration = Duration::from_millis(10);

/// A place of the driver's own, where a read-only bind mount is made ready before anybody sees it.
///
/// mount(2) makes a bind mount with the rights that its source has, and a second call takes them away. (The one call
/// that does both, mount_setattr(2), no safe crate has.) At a pod's target the mount would be writable in between, and
/// for good where the driver is killed there. Here nobody looks, and from here it is moved to its target in one step,
/// which the kernel does out of mounts only that are not shared (mount_namespaces(7), `MS_MOVE`).
///
/// There is room for one mount at a time. Whoever is there holds a lock, which goes with its process: what it finds
/// mounted was left by a driver that was killed.
#[derive(Debug, Clone)]
pub struct Aside(PathBuf);

/// What is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder: a file system.
    Folder,
    /// A file: a device's node.
    File,
}

impl Kind {
    /// Where it is bound, below the place.
    const fn name(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::File => "file",
        }
    }
}

impl Aside {
    /// The place in a folder that no other program uses. It is made when it is needed.
    pub const fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Takes away what a driver that was killed has left there.
    ///
    /// # Errors
    /// The place cannot be used, or another driver is there and does not leave.
    pub async fn clear(&self) -> Result<(), MountError> {
        self.enter().await.map(drop)
    }

    /// Has something mounted at the place, makes that read-only and moves it to the target. Where that fails, nothing
    /// remains mounted. It goes on when the caller's future is dropped.
    ///
    /// # Errors
    /// Those of `make`; the kernel refuses; or another driver is at the place and does not leave.
    pub(super) async fn show_read_only(
        &self,
        kind: Kind,
        target: PathBuf,
        make: impl FnOnce(&Path) -> Result<(), MountError> + Send + 'static,
    ) -> Result<(), MountError> {
        let inside = self.enter().await?;
        blocking(move || inside.show(kind, &target, make)).await
    }

    async fn enter(&self) -> Result<Inside, MountError> {
        let alone = async {
            loop {
                let folder = self.0.clone();
                if let Some(inside) = blocking(move || Inside::enter(&folder)).await? {
                    return Ok(inside);
                }
                tokio::time::sleep(RETRY).await;
            }
        };
        let taken =
            |_| MountError::io(&self.0, "another publish is there, and does not end", ErrorKind::TimedOut);
        tokio::time::timeout(PATIENCE, alone).await.map_err(taken)?
    }
}

/// The place while nobody else is there.
struct Inside {
    /// As the kernel writes it in the mount table.
    folder: PathBuf,
    _lock: File,
}

impl Inside {
    /// Clears the place; `None` while somebody else is there.
    fn enter(folder: &Path) -> Result<Option<Self>, MountError> {
        let failed = |source| MountError::io(folder, "no mount can be made ready there", source);
        match lock(folder).map_err(failed)? {
            Some(lock) => {
                let inside = Self { folder: fs::canonicalize(folder).map_err(failed)?, _lock: lock };
                inside.clear().map(|()| Some(inside))
            }
            None => Ok(None),
        }
    }

    fn clear(&self) -> Result<(), MountError> {
        let table = MountTable::read_now()?;
        for place in [Kind::Folder, Kind::File].map(|kind| self.place(kind)) {
            for _ in table.iter().filter(|mount| mount.target == place) {
                tracing::info!(path = %place.display(), "taking away a mount that was never finished");
                detach_now(&place)?;
            }
        }
        Ok(())
    }

    fn show(
        &self,
        kind: Kind,
        target: &Path,
        make: impl FnOnce(&Path) -> Result<(), MountError>,
    ) -> Result<(), MountError> {
        self.keep_to_itself()?;
        let place = self.make_place(kind)?;
        make(&place)?;
        let shown = restrict(&place).and_then(|()| {
            mount(Some(&place), target, None::<&str>, MsFlags::MS_MOVE, None::<&str>)
                .map_err(|errno| MountError::io(target, "the kernel does not move the mount there", errno))
        });
        if shown.is_err()
            && let Err(error) = detach_now(&place)
        {
            tracing::error!(%error, "an unwanted mount stays until the next publish for reading");
        }
        shown
    }

    /// Sees to it that what is mounted here is seen in no other mount namespace, and can be moved from here: the place
    /// becomes a mount of its own where the one that it lies in is shared.
    fn keep_to_itself(&self) -> Result<(), MountError> {
        let table = MountTable::read_now()?;
        if table.containing(&self.folder).is_none_or(|mount| mount.shared.is_none()) {
            return Ok(());
        }
        let (own, none) = (&self.folder, None::<&str>);
        let bound = if table.at(own).is_none() {
            mount(Some(own), own, none, MsFlags::MS_BIND, none)
        } else {
            // A driver was killed before the next call.
            Ok(())
        };
        bound
            .and_then(|()| mount(none, own, none, MsFlags::MS_PRIVATE, none))
            .map_err(|errno| MountError::io(own, "the kernel does not make it a mount of its own", errno))
    }

    fn place(&self, kind: Kind) -> PathBuf {
        self.folder.join(kind.name())
    }

    fn make_place(&self, kind: Kind) -> Result<PathBuf, MountError> {
        let place = self.place(kind);
        let made = match kind {
            Kind::Folder => DirBuilder::new().recursive(true).mode(0o700).create(&place),
            Kind::File => open(&place).map(drop),
        };
        made.map_err(|source| MountError::io(&place, "cannot be made", source))?;
        Ok(place)
    }
}

/// The lock on the place; `None` where somebody has it.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = open(&folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Opens a file, which is made if it is not there.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Makes a bind mount read-only, and looks whether it is.
fn restrict(place: &Path) -> Result<(), MountError> {
    let unproven = || MountError::io(place, "did not become read-only", ErrorKind::Other);
    let table = MountTable::read_now()?;
    let found = table.at(place).ok_or_else(unproven)?;
    let flags = of_mount(found) | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(None::<&str>, place, None::<&str>, flags, None::<&str>)
        .map_err(|errno| MountError::io(place, "the kernel does not make it read-only", errno))?;
    let table = MountTable::read_now()?;
    table.at(place).filter(|mount| mount.has_option("ro")).map(drop).ok_or_else(unproven)
}
