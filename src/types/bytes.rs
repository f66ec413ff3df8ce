use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ParseError;

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes at all.
    pub const ZERO: Self = Self(0);

    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A size of `mib` MiB (2^20 bytes each).
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as CSI's `int64`; a size beyond it (8 EiB) is shown as the largest there is.
    pub fn to_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// CSI's `int64`, which must not be negative.
    ///
    /// # Errors
    /// A negative number.
    pub fn from_i64(what: &'static str, bytes: i64) -> Result<Self, ParseError> {
        u64::try_from(bytes)
            .map(Self)
            .map_err(|_| ParseError::new(what, &bytes.to_string(), "must not be negative"))
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Suffixes as Kubernetes writes quantities, and with a `B` as people do.
const UNITS: [(&str, u64); 12] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
];

impl FromStr for Bytes {
    type Err = ParseError;

    /// `10Gi`, `10GiB`, `500M`, `1048576`: a whole number and a unit.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("size", text, why);
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| bad("must begin with a whole number, as in 10Gi"))?;
        let unit = unit.trim_start();
        let unit = unit.strip_suffix('B').unwrap_or(unit);
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| bad("must end in KiB, MiB, GiB, TiB, PiB, EiB, kB, MB, GB, TB, PB or no unit"))?;
        number.checked_mul(*factor).map(Self).ok_or_else(|| bad("is too large"))
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that shows the size exactly; otherwise bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut number = self.0;
        let mut unit = 0;
        while number != 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
            number /= 1024;
            unit += 1;
        }
        write!(f, "{number} {}", units[unit])
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        for (text, bytes) in
            [("0", 0), ("1Ki", 1024), ("10GiB", 10 << 30), ("5M", 5_000_000), ("3 MiB", 3 << 20)]
        {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes::new(bytes), "{text}");
        }
        for text in ["", "Gi", "1.5Gi", "-1", "10Qi", "99999999999Ei"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_exactly() {
        assert_eq!(Bytes::mib(300).to_string(), "300 MiB");
        assert_eq!(Bytes::new(10_000_001).to_string(), "10000001 bytes");
        assert_eq!(Bytes::ZERO.to_string(), "0 bytes");
    }
}
