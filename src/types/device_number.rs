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

impl DeviceNumber {
    /// The number in a file's `st_rdev` or `st_dev`, in the C library's coding (makedev(3)).
    pub const fn from_dev(dev: u64) -> Self {
        Self { major: nix::sys::stat::major(dev), minor: nix::sys::stat::minor(dev) }
    }

    /// The C library's coding of it, as mknod(2) takes it.
    pub const fn to_dev(self) -> u64 {
        nix::sys::stat::makedev(self.major, self.minor)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_survives_both_codings(major in 0_u64..1 << 12, minor in 0_u64..1 << 20) {
            let number = DeviceNumber { major, minor };
            prop_assert_eq!(DeviceNumber::from_dev(number.to_dev()), number);
            prop_assert_eq!(number.to_string().parse::<DeviceNumber>().unwrap(), number);
        }
    }
}
