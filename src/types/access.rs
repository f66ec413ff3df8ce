use std::fmt;

use super::{FsType, MountOptions};

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

impl fmt::Display for VolumeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filesystem(fs) => write!(f, "{fs} file system"),
            Self::Block => f.write_str("raw block volume"),
        }
    }
}

/// CSI's `VolumeCapability`, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeCapability {
    /// Who may use the volume.
    pub access: AccessMode,
    /// How it is shown.
    pub mode: VolumeMode,
    /// How its file system is mounted; empty for a block volume.
    pub options: MountOptions,
}
