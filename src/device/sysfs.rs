use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::DeviceError;
use crate::types::{Bytes, DeviceNumber, DmUuid};

/// What the kernel tells of block devices in sysfs (Documentation/ABI/testing/sysfs-block, sysfs-block-dm).
#[derive(Debug, Clone)]
pub(super) struct Sysfs {
    root: PathBuf,
}

/// The kernel counts sizes in these, whatever the device's own sectors are.
const SECTOR: u64 = 512;

impl Sysfs {
    pub(super) const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    fn device(&self, number: DeviceNumber) -> PathBuf {
        self.root.join("dev/block").join(number.to_string())
    }

    /// The identity of a device; `None` if there is no such device, or device mapper did not make it.
    pub(super) fn uuid(&self, number: DeviceNumber) -> Result<Option<DmUuid>, DeviceError> {
        value(&self.device(number).join("dm/uuid"))
    }

    /// The name that device mapper knows a device by.
    pub(super) fn name(&self, number: DeviceNumber) -> Result<Option<String>, DeviceError> {
        text(&self.device(number).join("dm/name"))
    }

    /// The kernel's name for a device, as in `dm-3`.
    pub(super) fn kernel_name(&self, number: DeviceNumber) -> String {
        let link = fs::read_link(self.device(number)).ok();
        let name = link.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| format!("dm-{}", number.minor))
    }

    /// Whether a device is suspended.
    pub(super) fn suspended(&self, number: DeviceNumber) -> Result<bool, DeviceError> {
        let flag: u8 =
            value(&self.device(number).join("dm/suspended"))?.ok_or(DeviceError::Gone { number })?;
        Ok(flag != 0)
    }

    /// The size of a device.
    pub(super) fn size(&self, number: DeviceNumber) -> Result<Bytes, DeviceError> {
        let sectors: u64 = value(&self.device(number).join("size"))?.ok_or(DeviceError::Gone { number })?;
        Ok(Bytes::new(sectors.saturating_mul(SECTOR)))
    }

    /// The kernel's names of the devices that lie on a device; `None` if there is no such device.
    pub(super) fn holders(&self, number: DeviceNumber) -> Result<Option<Vec<String>>, DeviceError> {
        let path = self.device(number).join("holders");
        let refused = |source| DeviceError::io(&path, "cannot be listed", source);
        let entries = match fs::read_dir(&path) {
            Err(error) if is_no_device(&error) => return Ok(None),
            entries => entries.map_err(refused)?,
        };
        let name = |entry: std::io::Result<fs::DirEntry>| {
            Ok(entry.map_err(refused)?.file_name().to_string_lossy().into_owned())
        };
        entries.map(name).collect::<Result<_, _>>().map(Some)
    }

    /// The numbers of the devices that a device lies on; none where it lies on none, or is gone.
    pub(super) fn below(&self, number: DeviceNumber) -> Result<Vec<DeviceNumber>, DeviceError> {
        let path = self.device(number).join("slaves");
        let refused = |source| DeviceError::io(&path, "cannot be listed", source);
        let entries = match fs::read_dir(&path) {
            Err(error) if is_no_device(&error) => return Ok(Vec::new()),
            entries => entries.map_err(refused)?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            numbers.extend(value::<DeviceNumber>(&entry.map_err(refused)?.path().join("dev"))?);
        }
        Ok(numbers)
    }

    /// The number of the device-mapper device with that identity.
    pub(super) fn find(&self, uuid: &DmUuid) -> Result<Option<DeviceNumber>, DeviceError> {
        let block = self.root.join("block");
        let refused = |source| DeviceError::io(&block, "cannot be listed", source);
        for entry in fs::read_dir(&block).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            if !entry.file_name().as_encoded_bytes().starts_with(b"dm-") {
                continue;
            }
            // A device that goes away in the meantime has no uuid or no number: it is not the one.
            if value(&entry.path().join("dm/uuid"))?.as_ref() == Some(uuid)
                && let Some(number) = value(&entry.path().join("dev"))?
            {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// A file's text without the newline at its end; `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>, DeviceError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end().to_owned())),
        Err(error) if is_no_device(&error) => Ok(None),
        Err(error) => Err(DeviceError::io(path, "cannot be read", error)),
    }
}

/// Whether a device is not there. With ENODEV it went away after its file was opened; with EINVAL device mapper
/// is just removing it (`dm_attr_show` in the kernel's drivers/md/dm-sysfs.c).
fn is_no_device(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
        || matches!(error.raw_os_error(), Some(nix::libc::ENODEV | nix::libc::EINVAL))
}

fn value<T: FromStr>(path: &Path) -> Result<Option<T>, DeviceError> {
    let unreadable = |found: &String| DeviceError::Unreadable { path: path.to_owned(), found: found.clone() };
    text(path)?.map(|text| text.parse().map_err(|_| unreadable(&text))).transpose()
}
