use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::lvm_name::{LONGEST_DM_NAME, is_name_byte};
use super::{CsiName, LvUuid, ParseError};

/// The name of a logical volume, by LVM's rules (lvm(8), "VALID NAMES").
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LvName(String);

/// Names that LVM keeps to itself, wholly or by their beginning (lvm(8), "VALID NAMES").
const RESERVED_STARTS: [&str; 2] = ["snapshot", "pvmove"];

/// Parts that LVM keeps for the hidden volumes it makes (lvm(8), "VALID NAMES").
const RESERVED_PARTS: [&str; 14] = [
    "_cdata", "_cmeta", "_corig", "_iorig", "_mimage", "_mlog", "_pmspare", "_rimage", "_rmeta", "_tdata",
    "_tmeta", "_vdata", "_vorigin", "_imeta",
];

/// The namespace of the version 5 UUIDs in names that are made from a CSI name.
const NAMES: Uuid = Uuid::from_u128(0x8a1f_53c7_9b0e_4d3a_a6c1_71ee_40b2_95d8);

impl LvName {
    /// The name of the volume that a caller calls `name`: itself where it is Kubernetes' `pvc-` and
    /// a UUID, otherwise `v-` and a hash of it. Always the same, and legal for LVM whatever the name.
    pub fn for_volume(name: &CsiName) -> Self {
        match name.as_str().strip_prefix("pvc-") {
            Some(uuid) if is_canonical_uuid(uuid) => Self(name.as_str().to_owned()),
            _ => Self(format!("v-{}", Uuid::new_v5(&NAMES, name.as_str().as_bytes()).simple())),
        }
    }

    /// The name of the hidden volume in which the extents that `target` is to get are zeroed.
    pub fn for_growth(target: &LvUuid) -> Self {
        Self(format!("grow-{}", target.compact()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lower case with hyphens: the one way in which Kubernetes writes a UID.
fn is_canonical_uuid(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|uuid| uuid.hyphenated().to_string() == text)
}

impl FromStr for LvName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("name of a logical volume", text, why);
        match text {
            "" | "." | ".." => Err(bad("is not allowed by LVM")),
            _ if text.starts_with('-') => Err(bad("must not begin with a hyphen")),
            _ if text.len() > LONGEST_DM_NAME => Err(bad("is too long for LVM")),
            _ if !text.bytes().all(is_name_byte) => Err(bad("may hold letters, digits and + _ . - only")),
            _ if RESERVED_STARTS.iter().any(|start| text.starts_with(start))
                || RESERVED_PARTS.iter().any(|part| text.contains(part)) =>
            {
                Err(bad("is one that LVM keeps for itself"))
            }
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for LvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lvm_name::{LONGEST_MANGLED, mangled_len};
    use super::*;
    use proptest::prelude::*;

    fn name_for(name: &str) -> String {
        LvName::for_volume(&name.parse().unwrap()).0
    }

    #[test]
    fn kubernetes_names_stay_legible() {
        let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
        assert_eq!(name_for(name), name);
        assert!(name_for(&name.to_uppercase()).starts_with("v-"));
    }

    proptest! {
        #[test]
        fn every_csi_name_has_a_legal_name_of_its_own(a in "\\PC{1,32}", b in "\\PC{1,32}") {
            let (first, second) = (name_for(&a), name_for(&b));
            prop_assert!(first.parse::<LvName>().is_ok());
            prop_assert!(mangled_len(&first) <= LONGEST_MANGLED);
            prop_assert_eq!(a == b, first == second);
        }
    }

    #[test]
    fn names_that_lvm_refuses_become_names_that_it_takes() {
        for name in ["snapshot-1234", "pvmove0", "x_tmeta", "-y", "a b", "../../etc", &"x".repeat(128)] {
            assert!(name_for(name).parse::<LvName>().is_ok(), "{name}");
        }
        for bad in ["snapshot-1", "pvmove1", "x_tmeta", "x_mlogy", "-dash", "a b", "a@b", ""] {
            assert!(bad.parse::<LvName>().is_err(), "{bad}");
        }
    }
}
