use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// A block device's number: how the kernel knows it, whatever paths lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The major number.
    pub major: u64,
    /// The minor number.
    pub minor: u64,
}

impl FromStr for DeviceNumber {
    type Err = ParseError;

    /// `252:3`, as sysfs and mountinfo write it.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("device number", text, "must be MAJOR:MINOR");
        let (major, minor) = text.trim().split_once(':').ok_or_else(bad)?;
        let number = |part: &str| part.parse().map_err(|_| bad());
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}
