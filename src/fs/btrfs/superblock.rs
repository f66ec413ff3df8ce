//! The superblock of btrfs on the disk (btrfs' on-disk format, "Superblock"). All is for one device.

use crate::types::Bytes;

/// Where the first one lies on the device, in bytes.
pub(super) const OFFSET: u64 = 64 << 10;

/// How long it is, in bytes.
pub(super) const SIZE: usize = 4096;

/// Where it ends on the device. Nothing before it is in use.
pub(super) const END: usize = (64 << 10) + SIZE;

const MAGIC: &[u8] = b"_BHRfS_M";

/// What is needed of it: how large the file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superblock {
    size: u64,
    sector_size: u32,
}

impl Superblock {
    /// Reads a superblock; the error is the reason why it is none.
    pub(super) fn parse(bytes: &[u8; SIZE]) -> Result<Self, &'static str> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[0x40..0x48] != *MAGIC {
            return Err("its superblock lacks the magic number");
        }
        if long(0x88) != 1 {
            return Err("it lies on several devices");
        }
        let sector_size = word(0x90);
        if !sector_size.is_power_of_two() || !(4096..=65536).contains(&sector_size) {
            return Err("its superblock gives a sector size that there is not");
        }
        Ok(Self { size: long(0x70), sector_size })
    }

    /// The size of the file system.
    pub(super) const fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    /// The unit in which it takes up its device.
    pub(super) fn sector_size(&self) -> Bytes {
        Bytes::new(u64::from(self.sector_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn superblock(size: u64, devices: u64, sector_size: u32) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0x40..0x48].copy_from_slice(MAGIC);
        bytes[0x70..0x78].copy_from_slice(&size.to_le_bytes());
        bytes[0x88..0x90].copy_from_slice(&devices.to_le_bytes());
        bytes[0x90..0x94].copy_from_slice(&sector_size.to_le_bytes());
        bytes
    }

    #[test]
    fn sizes_are_read() {
        let found = Superblock::parse(&superblock(128 << 20, 1, 4096)).unwrap();
        assert_eq!((found.size(), found.sector_size()), (Bytes::mib(128), Bytes::new(4096)));
    }

    #[test]
    fn what_is_none_is_refused() {
        for bytes in [[0; SIZE], superblock(1, 2, 4096), superblock(1, 1, 0), superblock(1, 1, 5000)] {
            assert!(Superblock::parse(&bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(noise in proptest::collection::vec(any::<u8>(), SIZE), magic in any::<bool>()) {
            let mut bytes: [u8; SIZE] = noise.try_into().unwrap();
            if magic {
                bytes[0x40..0x48].copy_from_slice(MAGIC);
            }
            if let Ok(found) = Superblock::parse(&bytes) {
                let _ = (found.size(), found.sector_size());
            }
        }
    }
}
