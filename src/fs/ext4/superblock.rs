//! The superblock of ext4 on the disk (the kernel's Documentation/filesystems/ext4, "Super Block").

use crate::types::Bytes;

/// Where it lies on the device, in bytes.
pub(super) const OFFSET: u64 = 1024;

/// How long it is, in bytes.
pub(super) const SIZE: usize = 1024;

const MAGIC: u16 = 0xef53;

/// The feature that gives block numbers 64 bits.
const INCOMPAT_64BIT: u32 = 0x80;

/// The flag in its state that an error was noted since the last check.
const STATE_ERROR: u16 = 2;

/// What is needed of it: how large the file system is, and whether it may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superblock {
    blocks: u64,
    block_size: u64,
    blocks_per_group: u64,
    noted_error: bool,
}

impl Superblock {
    /// Reads a superblock; the error is the reason why it is none.
    pub(super) fn parse(bytes: &[u8; SIZE]) -> Result<Self, &'static str> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        if half(0x38) != MAGIC {
            return Err("its superblock lacks the magic number");
        }
        let shift = word(0x18);
        if shift > 6 {
            return Err("its superblock gives a block size that there is not");
        }
        let high = if word(0x60) & INCOMPAT_64BIT == 0 { 0 } else { word(0x150) };
        let block_size = 1024 << shift;
        let blocks = u64::from(word(0x04)) | u64::from(high) << 32;
        if blocks.checked_mul(block_size).is_none() {
            return Err("its superblock gives a size that there is not");
        }
        let noted_error = half(0x3a) & STATE_ERROR != 0;
        Ok(Self { blocks, block_size, blocks_per_group: u64::from(word(0x20)), noted_error })
    }

    /// The size of the file system.
    pub(super) const fn size(&self) -> Bytes {
        Bytes::new(self.blocks * self.block_size)
    }

    /// The size of one block.
    pub(super) const fn block_size(&self) -> Bytes {
        Bytes::new(self.block_size)
    }

    /// Whether an error was noted since the last check. The kernel grows none with that note.
    pub(super) const fn has_noted_error(&self) -> bool {
        self.noted_error
    }

    /// The size of one block group.
    pub(super) const fn group_size(&self) -> Bytes {
        Bytes::new(self.blocks_per_group.saturating_mul(self.block_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn superblock(blocks: u64, shift: u8, wide: bool) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0x38..0x3a].copy_from_slice(&MAGIC.to_le_bytes());
        let blocks = blocks.to_le_bytes();
        bytes[0x04..0x08].copy_from_slice(&blocks[..4]);
        bytes[0x150..0x154].copy_from_slice(&blocks[4..]);
        bytes[0x18] = shift;
        bytes[0x20..0x24].copy_from_slice(&32768_u32.to_le_bytes());
        bytes[0x60] = if wide { 0x80 } else { 0 };
        bytes
    }

    #[test]
    fn sizes_are_read_with_and_without_64_bits() {
        let wide = Superblock::parse(&superblock((1 << 32) + 5, 2, true)).unwrap();
        assert_eq!(wide.size(), Bytes::new(((1 << 32) + 5) * 4096));
        assert_eq!(wide.group_size(), Bytes::mib(128));
        let narrow = Superblock::parse(&superblock((1 << 32) + 5, 0, false)).unwrap();
        assert_eq!((narrow.size(), narrow.block_size()), (Bytes::new(5 * 1024), Bytes::new(1024)));
    }

    #[test]
    fn a_noted_error_is_told_from_the_other_states() {
        for (state, noted) in [(0, false), (1, false), (5, false), (2, true), (3, true)] {
            let mut bytes = superblock(1, 2, true);
            bytes[0x3a] = state;
            assert_eq!(Superblock::parse(&bytes).unwrap().has_noted_error(), noted, "{state}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        assert!(Superblock::parse(&[0; SIZE]).is_err());
        assert!(Superblock::parse(&superblock(1, 7, false)).is_err());
        assert!(Superblock::parse(&superblock(u64::MAX, 2, true)).is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(noise in proptest::collection::vec(any::<u8>(), SIZE), magic in any::<bool>()) {
            let mut bytes: [u8; SIZE] = noise.try_into().unwrap();
            if magic {
                bytes[0x38..0x3a].copy_from_slice(&MAGIC.to_le_bytes());
            }
            if let Ok(found) = Superblock::parse(&bytes) {
                let _ = (found.size(), found.group_size());
            }
        }
    }
}
