use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{LvUuid, ParseError};

/// A file system that Quarry makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FsType {
    /// The default.
    #[default]
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs, on one device.
    Btrfs,
}

impl FsType {
    /// Every file system that there is.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// The kernel's name for it, which is also the class parameter's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

impl FromStr for FsType {
    type Err = ParseError;

    /// The empty text means the default.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|fs| fs.name() == text)
            .ok_or_else(|| ParseError::new("file system", text, format!("is not one of: {}", names())))
    }
}

impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The namespace of the version 5 UUIDs of file systems.
const FILE_SYSTEMS: Uuid = Uuid::from_u128(0x52c0_1be9_6f4d_4b0f_8d27_c3a9_0e61_7a34);

/// The UUID of the file system that Quarry makes on a volume. It follows from the volume's own UUID,
/// so that a file system which an earlier, interrupted preparation made is known for what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsUuid(Uuid);

impl FsUuid {
    /// The UUID of the file system on `lv`.
    pub fn on(lv: &LvUuid) -> Self {
        Self(Uuid::new_v5(&FILE_SYSTEMS, lv.as_str().as_bytes()))
    }

    /// Its bytes as one number, the first byte the highest.
    pub const fn as_u128(self) -> u128 {
        self.0.as_u128()
    }
}

impl FromStr for FsUuid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| ParseError::new("UUID of a file system", text, "is no UUID"))
    }
}

impl fmt::Display for FsUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}
