//! File systems: making, checking, growing, probing, and asking how full they are.
//!
//! One file for each file system, behind [`FileSystem`]. Devices are given as paths; whoever needs it to
//! be one certain device gives the path of a pinned one. Exit codes are decoded here, each program's
//! where the program is run. This module decides nothing about volumes: above all not whether one may be
//! formatted.

mod btrfs;
mod check;
mod error;
mod ext4;
mod extent;
mod gauge;
mod health;
mod probe;
mod signature;
mod surface;
mod usage;
mod xfs;

pub use error::FsError;
pub use health::{Health, health};
pub use probe::{Content, probe};
pub use usage::{Count, Usage, usage};

use std::fs::File;
use std::path::Path;

use crate::exec::Runner;
use crate::types::{Bytes, FsType, FsUuid, MakeOptions};

/// What Quarry does with a file system. Everything else about it is the kernel's business.
#[async_trait::async_trait]
pub trait FileSystem: Send + Sync {
    /// Which file system this is.
    fn fs_type(&self) -> FsType;

    /// What it can be made on.
    fn limits(&self) -> Limits;

    /// Makes an empty file system, with that UUID, on a device; whatever was there is lost. A device that is
    /// mounted is refused, and left as it is. `options` are those of this file system alone.
    ///
    /// The program is never killed and goes on when the caller's future is dropped, or the caller dies.
    /// `lock` becomes its standard input, so that a lock on that open file (flock(2)) lives until it
    /// ends. Such a lock goes away with the last descriptor of the open file, unless somebody takes it
    /// away by hand: hold it by `File::lock`, and not by a type that unlocks when it is dropped.
    ///
    /// The device is not flushed for certain: the caller does that.
    ///
    /// # Errors
    /// The program refuses or fails: a device too small, in use, or failing.
    async fn make(
        &self,
        runner: &dyn Runner,
        device: &Path,
        uuid: FsUuid,
        options: &MakeOptions,
        lock: File,
    ) -> Result<(), FsError>;

    /// Checks a file system that is not mounted, wholly and without writing to it. It takes minutes on a
    /// large one, and ends when the caller's future is dropped.
    ///
    /// # Errors
    /// The check itself did not run, so that nothing is known: above all, the file system is mounted.
    async fn check(&self, runner: &dyn Runner, device: &Path) -> Result<Check, FsError>;

    /// How much of its device the file system takes up. `mount_point` is where it is mounted, if it is:
    /// some file systems have to be asked there.
    ///
    /// # Errors
    /// The device cannot be read, or does not hold this file system.
    async fn size(&self, device: &Path, mount_point: Option<&Path>) -> Result<Bytes, FsError>;

    /// Whether, when its log holds a growth as it is mounted, it has to be mounted once more before anything is done
    /// in its new part.
    fn forgets_replayed_growth(&self) -> bool {
        false
    }

    /// Demands that the file system would grow if its device did, as far as can be told before.
    ///
    /// # Errors
    /// [`FsError::Unchecked`]; or the device cannot be read.
    async fn growable(&self, _device: &Path) -> Result<(), FsError> {
        Ok(())
    }

    /// Makes a mounted file system as large as its device. Where it is so already, no program is
    /// started.
    ///
    /// # Errors
    /// It did not become as large; it is larger than its device; or [`FsError::Unchecked`].
    async fn grow(&self, runner: &dyn Runner, mount_point: &Path, device: &Path) -> Result<Growth, FsError>;
}

/// What a file system can be made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The smallest device that it fits on and leaves room for files.
    pub minimum: Bytes,
    /// Whether whoever asks for less gets the minimum without a word.
    pub rounds_up: bool,
}

/// How a file system fared in a full check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Nothing is wrong with it.
    Clean,
    /// Something is wrong with it: the end of what the program says.
    Damaged(String),
}

/// What growing a file system changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It was as large as its device already.
    Nothing,
    /// It is larger now.
    Grown {
        /// Its size before.
        from: Bytes,
        /// Its size now.
        to: Bytes,
    },
}

/// The file system of that type.
pub fn of(fs_type: FsType) -> &'static dyn FileSystem {
    match fs_type {
        FsType::Ext4 => &ext4::Ext4,
        FsType::Xfs => &xfs::Xfs,
        FsType::Btrfs => &btrfs::Btrfs,
    }
}

/// Runs work that may wait for a disk beside the threads that serve calls.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
) -> Result<T, FsError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|ended| Err(FsError::Worker(ended)))
}
