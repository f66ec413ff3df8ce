use crate::types::{
    Bytes, CapacityRange, ClassParameters, ClusterId, CsiName, MakeOptions, Segment, VgName, VolumeId,
    VolumeMode,
};

/// What CreateVolume is asked for.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// The volume's name, the key for repeats.
    pub name: CsiName,
    /// The sizes that would do.
    pub range: CapacityRange,
    /// How the volume is to be shown.
    pub mode: VolumeMode,
    /// How its file system is to be made.
    pub make: MakeOptions,
    /// The parameters of its class.
    pub parameters: ClassParameters,
    /// The places where it may be made, any one of them: each is a set of segments that must all hold.
    /// Empty where any place will do.
    pub requisite: Vec<Vec<Segment>>,
    /// The cluster that asks, if it told.
    pub cluster: Option<ClusterId>,
}

/// A volume, as the Controller service shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its handle.
    pub id: VolumeId,
    /// Its size, a whole number of extents.
    pub size: Bytes,
    /// How it is shown.
    pub mode: VolumeMode,
}

/// What GetCapacity is asked for.
#[derive(Debug, Clone, Default)]
pub struct CapacityRequest {
    /// The group that the class names; the one with most room where it names none.
    pub volume_group: Option<VgName>,
    /// The place; none means any.
    pub segments: Vec<Segment>,
}

/// What creation may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// All of it.
    pub available: Bytes,
    /// The largest single volume that could be made now.
    pub maximum: Bytes,
}

/// What became of an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expanded {
    /// The volume's size now.
    pub size: Bytes,
    /// Whether the node has something left to do, which is so only where the volume is in use by
    /// something that is no mount of ours.
    pub node_expansion_required: bool,
}

/// How full a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// All there is.
    pub total: u64,
    /// What is taken.
    pub used: u64,
    /// What a user may still take.
    pub available: u64,
}

/// What NodeGetVolumeStats answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUsage {
    /// Of a mounted file system.
    Filesystem {
        /// In bytes.
        bytes: Usage,
        /// In inodes.
        inodes: Usage,
    },
    /// Of a raw block volume: its size, in bytes.
    Block(Bytes),
}
