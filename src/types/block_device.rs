use std::fmt;
use std::path::PathBuf;

use super::{DeviceNumber, DmUuid};

/// The block device of a logical volume, as it was when it was looked for.
///
/// Paths come to lead to other devices, and numbers come to belong to other volumes; the identity does
/// neither. Whoever is about to write pins the device first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its number. It holds for as long as the device is open or mounted.
    pub number: DeviceNumber,
    /// A node that led to it.
    pub path: PathBuf,
    /// Which volume it is.
    pub uuid: DmUuid,
    /// Whether it is suspended: every read and write would wait until somebody resumes it.
    pub suspended: bool,
}

impl fmt::Display for BlockDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.number)
    }
}
