use std::fmt;

use super::{FsType, MountOptions};

/// The word for a raw block volume; any other is a file system's name.
pub(super) const BLOCK: &str = "block";

/// Who may use a volume at once: CSI's `AccessMode`, as far as a volume on one node can serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessMode {
    /// One node, reading and writing.
    SingleNodeWriter,
    /// One node, reading only.
    SingleNodeReaderOnly,
    /// One node, one pod at a time.
    SingleNodeSingleWriter,
    /// One node, any number of its pods.
    SingleNodeMultiWriter,
}

/// How a volume is shown to its user: Kubernetes' `volumeMode`, CSI's access type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumeMode {
    /// As a mounted file system.
    Filesystem(FsType),
    /// As the block device itself.
    Block,
}

impl VolumeMode {
    /// One word for it: the name of the file system, or `block`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Filesystem(fs) => fs.name(),
            Self::Block => BLOCK,
        }
    }
}

impl fmt::Display for VolumeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filesystem(fs) => write!(f, "{fs} file system"),
            Self::Block => f.write_str("raw block volume"),
        }
    }
}

/// How a caller wants a volume to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WantedMode {
    /// As a mounted file system: of that type, or of whatever type the volume has.
    Filesystem(Option<FsType>),
    /// As the block device itself.
    Block,
}

impl WantedMode {
    /// Whether a volume that is shown in that way is what is wanted.
    pub fn fits(self, mode: VolumeMode) -> bool {
        match (self, mode) {
            (Self::Filesystem(wanted), VolumeMode::Filesystem(fs)) => {
                wanted.is_none_or(|wanted| wanted == fs)
            }
            (Self::Block, VolumeMode::Block) => true,
            _ => false,
        }
    }

    /// How a volume is shown that is made for this, with the file system `fs` where none is named.
    pub fn or(self, fs: FsType) -> VolumeMode {
        match self {
            Self::Filesystem(wanted) => VolumeMode::Filesystem(wanted.unwrap_or(fs)),
            Self::Block => VolumeMode::Block,
        }
    }
}

impl fmt::Display for WantedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filesystem(None) => f.write_str("file system"),
            Self::Filesystem(Some(fs)) => VolumeMode::Filesystem(*fs).fmt(f),
            Self::Block => VolumeMode::Block.fmt(f),
        }
    }
}

/// CSI's `VolumeCapability`, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeCapability {
    /// Who may use the volume.
    pub access: AccessMode,
    /// How it is shown.
    pub mode: WantedMode,
    /// How its file system is mounted; empty for a block volume.
    pub options: MountOptions,
}

impl VolumeCapability {
    /// Whether the volume may only be read: by its access mode, or by the mount option `ro`.
    pub fn is_read_only(&self) -> bool {
        self.access == AccessMode::SingleNodeReaderOnly || self.options.read_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_only_read_cannot_wish_for_more_and_who_may_write_can_wish_for_less() {
        let is_read_only = |access, options: &[&str]| {
            let options = MountOptions::parse(options.iter().copied()).unwrap();
            VolumeCapability { access, mode: WantedMode::Filesystem(None), options }.is_read_only()
        };
        for (options, expected) in
            [(&[][..], false), (&["noatime"], false), (&["ro"], true), (&["ro,rw"], false)]
        {
            assert_eq!(is_read_only(AccessMode::SingleNodeWriter, options), expected, "{options:?}");
            assert!(is_read_only(AccessMode::SingleNodeReaderOnly, options), "{options:?}");
        }
    }
}
