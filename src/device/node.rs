use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};

use super::DeviceError;
use crate::types::DeviceNumber;

/// The node for a device in a folder of ours. Its name is the number, so that it can never come to lead
/// to a device of another number.
pub(super) fn path(folder: &Path, number: DeviceNumber) -> PathBuf {
    folder.join(number.to_string())
}

/// Makes the node for a device, readable and writable by root alone; one that is there already stays.
pub(super) fn make(folder: &Path, number: DeviceNumber) -> Result<PathBuf, DeviceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| DeviceError::io(folder, "cannot be made", source))?;
    let path = path(folder, number);
    if leads_to(&path, number) {
        return Ok(path);
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(DeviceError::io(&path, "cannot be replaced", error));
        }
        _ => {}
    }
    match mknod(&path, SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, number.to_dev()) {
        Ok(()) => Ok(path),
        // Another task of ours was quicker.
        Err(_) if leads_to(&path, number) => Ok(path),
        Err(error) => Err(DeviceError::io(&path, "the device node cannot be made", error)),
    }
}

fn leads_to(path: &Path, number: DeviceNumber) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.file_type().is_block_device() && DeviceNumber::from_dev(found.rdev()) == number
    })
}
