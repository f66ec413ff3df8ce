use std::fmt;
use std::str::FromStr;

use super::{LvName, LvUuid, ParseError, VgName, VgUuid};

/// The name that LVM gives a logical volume in device mapper: `vg-lv`, with doubled hyphens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmName(String);

impl DmName {
    /// The device-mapper name of `lv` in `vg`.
    pub fn of(vg: &VgName, lv: &LvName) -> Self {
        let double = |name: &str| name.replace('-', "--");
        Self(format!("{}-{}", double(vg.as_str()), double(lv.as_str())))
    }

    /// The name, which is also the file's under `/dev/mapper`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of an LV called `lv`, in whatever group: a single hyphen stands before it.
    pub fn names(&self, lv: &LvName) -> bool {
        let group =
            self.0.strip_suffix(&lv.as_str().replace('-', "--")).and_then(|rest| rest.strip_suffix('-'));
        group.is_some_and(|group| group.bytes().rev().take_while(|byte| *byte == b'-').count() % 2 == 0)
    }
}

impl From<String> for DmName {
    /// Takes what sysfs shows.
    fn from(name: String) -> Self {
        Self(name)
    }
}

/// The identity of a device-mapper device that LVM made: `LVM-` and both UUIDs.
/// Unlike a path or a number it never comes to mean another volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmUuid(String);

impl DmUuid {
    /// The identity of the volume `lv` in the group `vg`.
    pub fn of(vg: &VgUuid, lv: &LvUuid) -> Self {
        Self(format!("LVM-{}{}", vg.compact(), lv.compact()))
    }

    /// Whether it is the identity of a volume in that group.
    pub fn is_of_group(&self, vg: &VgUuid) -> bool {
        self.0.strip_prefix("LVM-").is_some_and(|uuids| uuids.starts_with(&vg.compact()))
    }
}

impl FromStr for DmUuid {
    type Err = ParseError;

    /// Takes what sysfs shows; whatever stands there, it only has to be equal or not.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Ok(Self(text.trim_end().to_owned()))
    }
}

impl fmt::Display for DmUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lvm_name::mangled_len;
    use super::*;

    #[test]
    fn hyphens_are_doubled() {
        let name = DmName::of(&"my-vg".parse().unwrap(), &"pvc-1".parse().unwrap());
        assert_eq!(name.as_str(), "my--vg-pvc--1");
        assert_eq!(name.as_str().len(), mangled_len("my-vg") + 1 + mangled_len("pvc-1"));
        assert!(name.names(&"pvc-1".parse().unwrap()));
        assert!(!name.names(&"1".parse().unwrap()));
        assert!(!DmName::from("vg-a--b".to_owned()).names(&"b".parse().unwrap()));
    }
}
