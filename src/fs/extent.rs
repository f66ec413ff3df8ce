//! How far things reach: a device, a file system on it, and whether anybody uses it.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::libc::{EBUSY, O_EXCL};
use nix::sys::statvfs::statvfs;

use super::gauge::GAUGE;
use super::{FsError, Growth, blocking};
use crate::types::{Bytes, FsType};

/// A file system's superblock, and the size of the device below it.
pub(super) struct Look<S> {
    pub(super) superblock: S,
    pub(super) device_size: Bytes,
}

/// Reads the superblock of a file system, which lies at `offset`.
///
/// # Errors
/// The device cannot be read, or `parse` finds that this is none.
pub(super) async fn look<S, const LENGTH: usize>(
    device: &Path,
    fs: FsType,
    offset: u64,
    parse: fn(&[u8; LENGTH]) -> Result<S, &'static str>,
) -> Result<Look<S>, FsError> {
    let (bytes, device_size) = read(device, offset).await?;
    let superblock = parse(&bytes).map_err(|reason| FsError::not_this(device, fs, reason))?;
    Ok(Look { superblock, device_size })
}

/// Bytes of a device, and its size. They come through the page cache: of a mounted file system, only some
/// keep there what they have.
async fn read<const LENGTH: usize>(device: &Path, offset: u64) -> Result<([u8; LENGTH], Bytes), FsError> {
    let device = device.to_owned();
    blocking(move || {
        let io = |source| FsError::io(&device, "its superblock cannot be read", source);
        let mut file = File::open(&device).map_err(io)?;
        let mut bytes = [0; LENGTH];
        file.read_exact_at(&mut bytes, offset).map_err(io)?;
        let end = file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok((bytes, Bytes::new(end)))
    })
    .await
}

/// The size of the file system at a mount point, as it tells it (statvfs(3)): with what it needs itself, as
/// far as it counts that.
pub(super) async fn mounted(mount_point: &Path) -> Result<Bytes, FsError> {
    let look = |path: &Path| {
        let found = statvfs(path).map_err(|error| FsError::io(path, "does not tell its size", error))?;
        Ok(Bytes::new(found.blocks().saturating_mul(found.fragment_size())))
    };
    GAUGE.ask(mount_point, look).await
}

/// Whether nobody uses a device: it is opened for a moment as mount(2) would (open(2), `O_EXCL` on a block
/// device). Programs that are told to overwrite what they find, or that end with one and the same code for
/// "in use" and for "damaged", are not run otherwise.
///
/// # Errors
/// [`FsError::InUse`]: it is mounted, or under another device.
pub(super) async fn unused(device: &Path) -> Result<(), FsError> {
    let device = device.to_owned();
    blocking(move || match OpenOptions::new().read(true).custom_flags(O_EXCL).open(&device) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(EBUSY) => Err(FsError::InUse { device }),
        Err(error) => Err(FsError::io(&device, "cannot be opened", error)),
    })
    .await
}

/// What became of a file system that was to grow to its device. `slack` is how much it may leave unused.
///
/// # Errors
/// [`FsError::Short`].
pub(super) fn grown(
    device: &Path,
    (from, to): (Bytes, Bytes),
    available: Bytes,
    slack: Bytes,
) -> Result<Growth, FsError> {
    if available.saturating_sub(to) >= slack {
        return Err(FsError::Short { device: device.to_owned(), from, to, available });
    }
    Ok(if to == from { Growth::Nothing } else { Growth::Grown { from, to } })
}

/// Whether a file system has room to grow on its device: at least `least`.
///
/// # Errors
/// [`FsError::CutOff`]: it is larger than its device.
pub(super) fn has_room(device: &Path, size: Bytes, available: Bytes, least: Bytes) -> Result<bool, FsError> {
    if size > available {
        return Err(FsError::CutOff { device: device.to_owned(), size, available });
    }
    Ok(available.saturating_sub(size) >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_judged_by_what_it_came_to() {
        let device = Path::new("/dev/x");
        let (small, large, slack) = (Bytes::mib(1), Bytes::mib(9), Bytes::mib(2));
        let came_to = |to| grown(device, (small, to), Bytes::mib(10), slack);
        assert_eq!(came_to(large).unwrap(), Growth::Grown { from: small, to: large });
        assert!(matches!(came_to(small), Err(FsError::Short { .. })));
        assert_eq!(grown(device, (large, large), Bytes::mib(10), slack).unwrap(), Growth::Nothing);
        assert!(has_room(device, small, large, slack).unwrap());
        assert!(!has_room(device, large, large, slack).unwrap());
        assert!(matches!(has_room(device, large, small, slack), Err(FsError::CutOff { .. })));
    }
}
