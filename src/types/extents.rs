use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use super::{Bytes, ParseError};

/// A number of extents, LVM's unit of allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Extents(u64);

impl Extents {
    /// No extents.
    pub const ZERO: Self = Self(0);

    /// A count of `count` extents.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, or none.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or the most there can be.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The size of one extent of a volume group, in bytes. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentSize(NonZeroU64);

impl ExtentSize {
    /// An extent of `bytes` bytes; `None` for zero.
    pub fn new(bytes: Bytes) -> Option<Self> {
        NonZeroU64::new(bytes.get()).map(Self)
    }

    /// The size of one extent.
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0.get())
    }

    /// The fewest extents that hold `size`.
    pub const fn round_up(self, size: Bytes) -> Extents {
        Extents(size.get().div_ceil(self.0.get()))
    }

    /// The most extents that fit into `size`.
    pub const fn round_down(self, size: Bytes) -> Extents {
        Extents(size.get() / self.0.get())
    }

    /// What `extents` extents hold.
    pub const fn size_of(self, extents: Extents) -> Bytes {
        Bytes::new(self.0.get().saturating_mul(extents.0))
    }
}

/// A range of physical extents on one device, as LVM reports and takes it: `/dev/sdb:100-199`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeRange {
    /// The path of the physical volume's device.
    pub device: String,
    /// The first extent of the range.
    pub first: u64,
    /// The last extent of the range, itself included.
    pub last: u64,
}

impl PeRange {
    /// How many extents the range holds.
    pub const fn len(&self) -> Extents {
        Extents(self.last - self.first + 1)
    }

    /// Never: a range holds its first extent at least.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl FromStr for PeRange {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("extent range", text, "must be DEVICE:FIRST-LAST");
        let (device, range) = text.rsplit_once(':').ok_or_else(bad)?;
        let (first, last) = range.split_once('-').ok_or_else(bad)?;
        let (first, last) = (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
        if !device.starts_with('/') || first > last {
            return Err(bad());
        }
        Ok(Self { device: device.to_owned(), first, last })
    }
}

impl fmt::Display for PeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}-{}", self.device, self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounding_up_holds_the_size_and_wastes_less_than_an_extent(size in 0u64..1 << 60, shift in 12u32..32) {
            let extent = ExtentSize::new(Bytes::new(1 << shift)).unwrap();
            let held = extent.size_of(extent.round_up(Bytes::new(size))).get();
            prop_assert!(held >= size && held - size < 1 << shift);
        }
    }

    #[test]
    fn ranges_are_read_as_lvm_writes_them() {
        let range: PeRange = "/dev/sdb:100-199".parse().unwrap();
        assert_eq!((range.len(), range.to_string()), (Extents::new(100), "/dev/sdb:100-199".to_owned()));
        for bad in ["", "/dev/sdb", "/dev/sdb:5-4", "sdb:1-2", "/dev/sdb:1"] {
            assert!(bad.parse::<PeRange>().is_err(), "{bad}");
        }
    }
}
