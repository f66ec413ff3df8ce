use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use super::sysfs::Sysfs;
use super::{BlockDevice, DeviceError, blocking};
use crate::types::{Bytes, DeviceNumber};

/// What a device is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing, whoever else has it open.
    Write,
    /// Reading and writing, with nobody else having it mounted, under another device or open in this
    /// same way (open(2), `O_EXCL` on a block device). It keeps out mount(2), mke2fs and resize2fs too: not
    /// for a device that they are to work on.
    Exclusive,
}

/// A device that is open and was seen to be the one that was meant.
///
/// It stays that one for as long as this lives: device mapper does not remove a device that is open, so
/// its number cannot come to belong to another.
#[derive(Debug, Clone)]
pub struct Pinned {
    file: Arc<File>,
    device: BlockDevice,
}

impl Pinned {
    /// The device.
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// A path for programs, which leads to this very device whatever happens to the names in `/dev`
    /// (proc(5), `/proc/pid/fd`). It leads nowhere once this is dropped. Not for mount(2): the kernel
    /// would show this path as what is mounted.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// The size of the device.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub async fn size(&self) -> Result<Bytes, DeviceError> {
        let pinned = self.clone();
        blocking(move || pinned.size_now().map(Bytes::new)).await
    }

    /// Makes what was written to the device survive a power cut. It takes as long as the disk does.
    ///
    /// # Errors
    /// The disk did not take it: what was written may be lost.
    pub async fn flush(&self) -> Result<(), DeviceError> {
        let pinned = self.clone();
        blocking(move || pinned.flush_now()).await
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn size_now(&self) -> Result<u64, DeviceError> {
        let end = (&*self.file).seek(SeekFrom::End(0));
        end.map_err(|source| DeviceError::io(&self.device.path, "its size cannot be read", source))
    }

    pub(super) fn flush_now(&self) -> Result<(), DeviceError> {
        let flushed = self.file.sync_all();
        flushed.map_err(|source| DeviceError::io(&self.device.path, "cannot be flushed", source))
    }
}

/// Opens a device, and looks only then: what is open stays what it is.
pub(super) fn open(sysfs: &Sysfs, device: BlockDevice, access: Access) -> Result<Pinned, DeviceError> {
    let file = open_as(&device, access)?;
    check_number(&file, &device)?;
    check_identity(sysfs, &device)?;
    if sysfs.suspended(device.number)? {
        return Err(DeviceError::Suspended { path: device.path, number: device.number });
    }
    Ok(Pinned { file: Arc::new(file), device: BlockDevice { suspended: false, ..device } })
}

fn open_as(device: &BlockDevice, access: Access) -> Result<File, DeviceError> {
    let exclusive = if access == Access::Exclusive { nix::libc::O_EXCL } else { 0 };
    let opened = OpenOptions::new()
        .read(true)
        .write(access != Access::Read)
        // O_NONBLOCK: a path that leads to a pipe by now must not make this wait.
        .custom_flags(exclusive | nix::libc::O_NONBLOCK)
        .open(&device.path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::EBUSY) => DeviceError::InUse { path: device.path.clone() },
        Some(nix::libc::ENOENT | nix::libc::ENXIO | nix::libc::ENODEV) => {
            DeviceError::Gone { number: device.number }
        }
        _ => DeviceError::io(&device.path, "cannot be opened", error),
    })
}

fn check_number(file: &File, device: &BlockDevice) -> Result<(), DeviceError> {
    let refused = |source| DeviceError::io(&device.path, "cannot be looked at", source);
    let found = file.metadata().map_err(refused)?;
    let moved =
        |found: String| Err(DeviceError::Moved { path: device.path.clone(), expected: device.number, found });
    if !found.file_type().is_block_device() {
        return moved("what is no block device".to_owned());
    }
    let number = DeviceNumber::from_dev(found.rdev());
    if number == device.number { Ok(()) } else { moved(number.to_string()) }
}

fn check_identity(sysfs: &Sysfs, device: &BlockDevice) -> Result<(), DeviceError> {
    let found = sysfs.uuid(device.number)?;
    if found.as_ref() == Some(&device.uuid) {
        return Ok(());
    }
    let (number, expected) = (device.number, device.uuid.clone());
    Err(found.map_or(DeviceError::Gone { number }, |found| DeviceError::Replaced { number, expected, found }))
}
