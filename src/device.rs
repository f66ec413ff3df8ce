//! Block devices of logical volumes: finding, pinning, zeroing, flushing.
//!
//! A volume's device is known by its device-mapper UUID alone. A name under `/dev` is a hint, a number
//! holds while the device is open: so whoever reads or writes pins the device first ([`Dm::pin`]), which
//! opens it and then looks whether it is the one that was meant. This module knows nothing of LVM's
//! metadata, of file systems or of mounts.

mod dm;
mod error;
mod node;
mod pin;
mod sysfs;
mod zero;

pub use dm::Dm;
pub use error::DeviceError;
pub use pin::{Access, Pinned};
pub use zero::{Zeroed, zero};

pub use crate::types::BlockDevice;

/// Runs work that waits for the disk beside the threads that serve calls. It goes on when the caller's
/// future is dropped.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DeviceError> + Send + 'static,
) -> Result<T, DeviceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|ended| Err(DeviceError::Worker(ended)))
}
