use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// What tells one cluster from every other: the UID of its namespace kube-system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClusterId(String);

/// Longer than any UID that Kubernetes gives, in bytes.
const LONGEST: usize = 64;

impl ClusterId {
    /// The UID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let letters = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if text.is_empty() || text.len() > LONGEST || !letters {
            return Err(ParseError::new("UID of a cluster", text, "is none that Kubernetes gives"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clusters_id_is_a_uid() {
        let uid = "3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
        assert_eq!(uid.parse::<ClusterId>().unwrap().as_str(), uid);
        for bad in ["", "a b", "a/b", &"x".repeat(65)] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }
}
