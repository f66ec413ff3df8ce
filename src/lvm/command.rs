use std::fmt;

use crate::types::{Extents, LvName, PeRange};

/// Everything that Quarry ever asks of LVM about one volume group. The group is named beside it.
///
/// Where an LV is named it is one LV, always: without a name `lvremove` would empty the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Reports the group itself: `vgs`.
    Group,
    /// Reports every LV of the group: `lvs`.
    Volumes,
    /// Reports one LV, and the group in the same row: `lvs`.
    Volume(LvName),
    /// Reports where one LV's extents lie: `lvs --segments`.
    Segments(LvName),
    /// Makes a linear LV with its tags, in one commit; nothing is wiped or zeroed: `lvcreate`.
    Create {
        /// Its name.
        name: LvName,
        /// Its size.
        extents: Extents,
        /// Its tags, all of them.
        tags: Vec<String>,
    },
    /// Makes an LV larger: `lvextend`. It says how large, not by how much: whoever else makes it larger
    /// meanwhile, an lvm that has outlived its driver or another driver, it is not made larger twice.
    Extend {
        /// Which one.
        name: LvName,
        /// How many extents it is to have.
        to: Extents,
        /// The extents that it is to get; any free ones where this is empty.
        from: Vec<PeRange>,
    },
    /// Exchanges one tag for another in one commit: `lvchange`.
    Retag {
        /// Which LV.
        name: LvName,
        /// The tag to take away.
        remove: String,
        /// The tag to add.
        add: String,
    },
    /// Makes the LV's device: `lvchange -ay`.
    Activate(LvName),
    /// Loads the LV's table anew and resumes it: `lvchange --refresh`.
    Refresh(LvName),
    /// Removes the LV, and its device: `lvremove`.
    Remove(LvName),
}

impl Command {
    /// Whether it changes anything, so that it needs the group's writer turn.
    pub const fn is_change(&self) -> bool {
        !matches!(self, Self::Group | Self::Volumes | Self::Volume(_) | Self::Segments(_))
    }

    /// LVM's name of it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Group => "vgs",
            Self::Volumes | Self::Volume(_) | Self::Segments(_) => "lvs",
            Self::Create { .. } => "lvcreate",
            Self::Extend { .. } => "lvextend",
            Self::Retag { .. } | Self::Activate(_) | Self::Refresh(_) => "lvchange",
            Self::Remove(_) => "lvremove",
        }
    }

    /// How many commits of the group's metadata it makes: its sequence number moves by as much.
    pub const fn commits(&self) -> u64 {
        match self {
            Self::Group | Self::Volumes | Self::Volume(_) | Self::Segments(_) => 0,
            Self::Activate(_) | Self::Refresh(_) => 0,
            Self::Create { .. } | Self::Extend { .. } | Self::Retag { .. } | Self::Remove(_) => 1,
        }
    }
}

impl fmt::Display for Command {
    /// What it does, for a message: "did not …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group => f.write_str("report the group"),
            Self::Volumes => f.write_str("report the group's volumes"),
            Self::Volume(name) => write!(f, "report {name}"),
            Self::Segments(name) => write!(f, "report the segments of {name}"),
            Self::Create { name, extents, .. } => write!(f, "create {name} with {extents} extents"),
            Self::Extend { name, to, .. } => write!(f, "extend {name} to {to} extents"),
            Self::Retag { name, remove, add } => write!(f, "exchange the tag {remove} of {name} for {add}"),
            Self::Activate(name) => write!(f, "activate {name}"),
            Self::Refresh(name) => write!(f, "refresh {name}"),
            Self::Remove(name) => write!(f, "remove {name}"),
        }
    }
}
