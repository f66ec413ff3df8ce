use std::fmt;
use std::str::FromStr;

use super::{LvName, ParseError, VgUuid};

/// A volume's handle in CSI: `<VG UUID>/<LV name>`. It holds no node, no VG name and no path, so
/// that it stays true when a group is renamed or its disks move to another machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeId {
    /// The group that the volume lies in.
    pub vg: VgUuid,
    /// The volume's name in that group.
    pub lv: LvName,
}

impl FromStr for VolumeId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("volume id", text, "must be VG-UUID/LV-NAME");
        let (vg, lv) = text.split_once('/').ok_or_else(bad)?;
        Ok(Self { vg: vg.parse().map_err(|_| bad())?, lv: lv.parse().map_err(|_| bad())? })
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vg, self.lv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VG: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let text = format!("{VG}/pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10");
        assert_eq!(text.parse::<VolumeId>().unwrap().to_string(), text);
        assert!(text.len() <= 128);
    }

    #[test]
    fn crafted_ids_are_no_ids() {
        for bad in ["../x", "vg/../../etc", "-y", "vg/lv;rm", "fake-vol-id", ""] {
            assert!(bad.parse::<VolumeId>().is_err(), "{bad}");
        }
        for lv in ["../x", "-y", "a;rm", "a/b", "", "a\0", &"x".repeat(4096)] {
            assert!(format!("{VG}/{lv}").parse::<VolumeId>().is_err(), "{lv}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<VolumeId>();
        }
    }
}
