use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// Group lengths of an LVM UUID's printed form (lvm(8), "uuid").
const GROUPS: [usize; 7] = [6, 4, 4, 4, 4, 4, 6];

fn check(what: &'static str, text: &str) -> Result<String, ParseError> {
    let groups: Vec<&str> = text.split('-').collect();
    let shape = groups.iter().map(|group| group.len()).eq(GROUPS);
    let letters = groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_alphanumeric()));
    if shape && letters {
        Ok(text.to_owned())
    } else {
        Err(ParseError::new(what, text, "must have LVM's form, 6-4-4-4-4-4-6 letters and digits"))
    }
}

macro_rules! lvm_uuid {
    ($name:ident, $what:literal) => {
        #[doc = concat!("The UUID of a ", $what, ", in LVM's form with hyphens.")]
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// With hyphens, 38 characters.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Without hyphens, 32 characters: as device mapper and the disk hold it.
            pub fn compact(&self) -> String {
                self.0.replace('-', "")
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                check(concat!("UUID of a ", $what), text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

lvm_uuid!(VgUuid, "volume group");
lvm_uuid!(LvUuid, "logical volume");
lvm_uuid!(PvUuid, "physical volume");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lvms_own_form_is_a_uuid() {
        let good = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";
        assert_eq!(good.parse::<VgUuid>().unwrap().compact().len(), 32);
        for bad in
            ["", "..", "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns", "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7N/4"]
        {
            assert!(bad.parse::<VgUuid>().is_err(), "{bad}");
        }
    }
}
