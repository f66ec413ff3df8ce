use super::GroupSettings;
use crate::types::{Bytes, ParseError, VgPattern};

/// Volume groups to use, and what stays free in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeGroup {
    /// Which groups.
    pub pattern: VgPattern,
    /// What the creation of volumes leaves free in each of them, in bytes.
    pub reserve: Bytes,
}

impl TryFrom<GroupSettings> for VolumeGroup {
    type Error = ParseError;

    fn try_from(typed: GroupSettings) -> Result<Self, ParseError> {
        let reserve = typed.reserve.map(|text| text.parse()).transpose()?.unwrap_or_default();
        Ok(Self { pattern: typed.name.parse()?, reserve })
    }
}

impl GroupSettings {
    /// `NAME` or `NAME=RESERVE`, as on the command line. No volume group has `=` in its name.
    pub(super) fn from_flag(text: &str) -> Self {
        let (name, reserve) = text.split_once('=').map_or((text, None), |(name, size)| (name, Some(size)));
        Self { name: name.to_owned(), reserve: reserve.map(str::to_owned) }
    }
}
