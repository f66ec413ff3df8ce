use super::{Bytes, VgName, VgUuid};

/// What a volume group has to offer to the creation of volumes, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// The group.
    pub uuid: VgUuid,
    /// Its name; two groups can have the same, and neither is healthy then.
    pub name: VgName,
    /// Why nothing can be made in it, in words; `None` where it is healthy.
    pub trouble: Option<String>,
    /// What creation may use in all; nothing where there is trouble, or where no further LV can be written down.
    pub available: Bytes,
    /// The largest volume that could be made; nothing likewise.
    pub maximum: Bytes,
}

/// All the groups of a node, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Greater in every later state of the node.
    pub generation: u64,
    /// The groups that are there.
    pub groups: Vec<GroupState>,
}
