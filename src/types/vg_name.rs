use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::ParseError;
use super::lvm_name::{LONGEST_DM_NAME, LONGEST_MANGLED, is_name_byte, mangled_len};

/// The name of a volume group, by LVM's rules (lvm(8), "VALID NAMES").
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VgName(String);

impl VgName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the device-mapper names of the volumes that Quarry makes stay within the kernel's
    /// limit in this group. Hyphens count twice there.
    pub fn leaves_room(&self) -> bool {
        mangled_len(&self.0) + 1 + LONGEST_MANGLED <= LONGEST_DM_NAME
    }
}

impl FromStr for VgName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("name of a volume group", text, why);
        match text {
            "" | "." | ".." => Err(bad("is not allowed by LVM")),
            _ if text.starts_with('-') => Err(bad("must not begin with a hyphen")),
            _ if text.len() > LONGEST_DM_NAME => Err(bad("is too long for LVM")),
            _ if !text.bytes().all(is_name_byte) => Err(bad("may hold letters, digits and + _ . - only")),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for VgName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A volume group's name, or a glob over names in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VgPattern(String);

impl VgPattern {
    /// Whether `name` is meant.
    pub fn matches(&self, name: &VgName) -> bool {
        glob(self.0.as_bytes(), name.0.as_bytes())
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => glob(rest, text) || (!text.is_empty() && glob(pattern, &text[1..])),
        (Some((p, pattern)), Some((t, text))) => p == t && glob(pattern, text),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

impl FromStr for VgPattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("volume group", text, why);
        if text.is_empty() || !text.bytes().all(|b| b == b'*' || is_name_byte(b)) {
            return Err(bad("must be a name, or a pattern with *"));
        }
        let name = VgName(text.to_owned());
        if !text.contains('*') && !name.leaves_room() {
            return Err(bad("is so long that device mapper could not name its volumes: use a name \
                 of at most 80 characters, hyphens counted twice"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for VgPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VgPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_lvms_rules() {
        for good in ["vg0", "a.b", "_x", "a+b", "data-1"] {
            assert!(good.parse::<VgName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-x", "a b", "a/b", "ü", "a@b"] {
            assert!(bad.parse::<VgName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_that_leaves_no_room_for_volumes_is_refused_in_the_configuration() {
        assert!("v".repeat(80).parse::<VgPattern>().is_ok());
        assert!("v".repeat(81).parse::<VgPattern>().is_err());
        assert!("-".repeat(41).replacen('-', "v", 1).parse::<VgPattern>().is_err());
    }

    #[test]
    fn a_star_stands_for_any_text() {
        let matches =
            |pattern: &str, name: &str| pattern.parse::<VgPattern>().unwrap().matches(&name.parse().unwrap());
        assert!(matches("data-*", "data-1") && matches("*", "x") && matches("a*c*", "abcd"));
        assert!(!matches("data-*", "data1") && !matches("vg0", "vg01"));
    }
}
