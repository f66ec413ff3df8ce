//! The words of the house: values that are parsed once, at the edge, and valid ever after.
//!
//! Nothing here does I/O, and nothing here knows another module of the crate.

mod access;
mod block_device;
mod bytes;
mod call_timeout;
mod capacity_range;
mod chain;
mod cluster_id;
mod csi_name;
mod device_number;
mod dm;
mod extents;
mod fs_type;
mod group_state;
mod layout;
mod lv_name;
mod lvm_name;
mod lvm_uuid;
mod make_options;
mod mount_options;
mod parameters;
mod parse;
mod state;
mod tags;
mod target_path;
mod topology;
mod vg_name;
mod volume_id;

pub use access::{AccessMode, VolumeCapability, VolumeMode, WantedMode};
pub use block_device::BlockDevice;
pub use bytes::Bytes;
pub use call_timeout::CallTimeout;
pub use capacity_range::{CapacityRange, RangeError};
pub use chain::chain;
pub use cluster_id::ClusterId;
pub use csi_name::CsiName;
pub use device_number::DeviceNumber;
pub use dm::{DmName, DmUuid};
pub use extents::{ExtentSize, Extents, PeRange};
pub use fs_type::{FsType, FsUuid};
pub use group_state::{GroupState, NodeState};
pub use layout::Layout;
pub use lv_name::LvName;
pub use lvm_uuid::{LvUuid, PvUuid, VgUuid};
pub use make_options::{MakeOption, MakeOptions};
pub use mount_options::MountOptions;
pub use parameters::{ClassParameters, PARAMETERS, Parameter};
pub use parse::ParseError;
pub use state::VolumeState;
pub use tags::{Claim, GrowthTags, Owner, SCHEMA_VERSION, TagError, VolumeTags, state_change};
pub use target_path::TargetPath;
pub use topology::{NODE_KEY, NodeName, Segment, VG_KEY_PREFIX};
pub use vg_name::{VgName, VgPattern};
pub use volume_id::VolumeId;
