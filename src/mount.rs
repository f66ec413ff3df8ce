//! The mount table of this process's mount namespace, and changes to it.
//!
//! What is mounted where is read from `/proc/self/mountinfo` and nowhere else, and recognised by device
//! numbers, never by the text of a path. No path is touched but the caller's own targets, the bind
//! mounts of device nodes and the driver's own place for mounts that are not ready: somebody's dead network
//! mount must not hold up a volume. After each change the table is read again, and only what it shows counts
//! as done.

mod aside;
mod attach;
mod bind;
mod btrfs;
mod error;
mod flags;
mod look;
mod mountinfo;
mod table;
mod target;
mod unmount;

pub use aside::Aside;
pub use attach::mount_fs;
pub use bind::{Rights, bind_device, bind_fs};
pub use error::MountError;
pub use look::{Mounted, block_targets, look, mounts_of};
pub use mountinfo::Mount;
pub use table::{MountTable, is_shared};
pub use target::{make_dir, make_file, remove};
pub use unmount::unmount;

/// Runs a system call that may wait beside the threads that serve calls. It goes on when the caller's
/// future is dropped.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MountError> + Send + 'static,
) -> Result<T, MountError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|ended| Err(MountError::Worker(ended)))
}
