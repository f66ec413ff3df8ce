//! The superblock of XFS on the disk (the kernel's fs/xfs/libxfs/xfs_format.h, `struct xfs_dsb`).

use std::ops::Range;

use crate::types::Bytes;

/// How much of it is read, in bytes.
pub(super) const SIZE: usize = 512;

const MAGIC: &[u8] = b"XFSB";

/// The fewest blocks that the kernel makes a group of (`XFS_MIN_AG_BLOCKS`).
const SMALLEST_GROUP: u64 = 64;

/// What is needed of it: how large the file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superblock {
    blocks: u64,
    block_size: u64,
    log_blocks: u64,
    label: [u8; LABEL.end - LABEL.start],
}

/// Where its label lies (`sb_fname`), which ends with its first zero byte, if it has any.
const LABEL: Range<usize> = 108..120;

impl Superblock {
    /// Reads a superblock; the error is the reason why it is none.
    pub(super) fn parse(bytes: &[u8; SIZE]) -> Result<Self, &'static str> {
        if bytes[..4] != *MAGIC {
            return Err("its superblock lacks the magic number");
        }
        let block_size = u64::from(word(bytes, 4));
        if !block_size.is_power_of_two() || !(512..=65536).contains(&block_size) {
            return Err("its superblock gives a block size that there is not");
        }
        let blocks = long(bytes, 8);
        if blocks.checked_mul(block_size).is_none() {
            return Err("its superblock gives a size that there is not");
        }
        // A log on another device takes nothing away from this one.
        let has_log_inside = long(bytes, 48) != 0;
        let log_blocks = if has_log_inside { u64::from(word(bytes, 96)) } else { 0 };
        let mut label = [0; LABEL.end - LABEL.start];
        label.copy_from_slice(&bytes[LABEL]);
        Ok(Self { blocks, block_size, log_blocks, label })
    }

    /// The size of the file system.
    pub(super) const fn size(&self) -> Bytes {
        Bytes::new(self.blocks * self.block_size)
    }

    /// The size of a mounted file system, which leaves its log out of what it tells (`xfs_fs_statfs`).
    pub(super) const fn with_log(&self, told: Bytes) -> Bytes {
        Bytes::new(told.get().saturating_add(self.log_blocks * self.block_size))
    }

    /// Its label, as far as it is a word.
    pub(super) fn label(&self) -> Option<&str> {
        let label = self.label.split(|byte| *byte == 0).next()?;
        let is_word = label.iter().all(u8::is_ascii_graphic);
        std::str::from_utf8(label).ok().filter(|_| is_word)
    }

    /// The least that it can grow by, and more than it ever leaves unused.
    pub(super) const fn smallest_growth(&self) -> Bytes {
        Bytes::new(SMALLEST_GROUP * self.block_size)
    }
}

fn word(bytes: &[u8; SIZE], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn long(bytes: &[u8; SIZE], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn superblock(blocks: u64, block_size: u32) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&block_size.to_be_bytes());
        bytes[8..16].copy_from_slice(&blocks.to_be_bytes());
        bytes[48..56].copy_from_slice(&1_u64.to_be_bytes());
        bytes[96..100].copy_from_slice(&16384_u32.to_be_bytes());
        bytes
    }

    #[test]
    fn the_log_counts_where_it_lies_inside() {
        let mut bytes = superblock(76800, 4096);
        let inside = Superblock::parse(&bytes).unwrap();
        assert_eq!(inside.size(), Bytes::mib(300));
        assert_eq!(inside.with_log(Bytes::mib(236)), Bytes::mib(300));
        assert_eq!(inside.smallest_growth(), Bytes::new(256 << 10));
        bytes[48..56].fill(0);
        assert_eq!(Superblock::parse(&bytes).unwrap().with_log(Bytes::mib(300)), Bytes::mib(300));
    }

    #[test]
    fn what_is_none_is_refused() {
        for bytes in [[0; SIZE], superblock(1, 0), superblock(1, 4097), superblock(u64::MAX, 4096)] {
            assert!(Superblock::parse(&bytes).is_err());
        }
    }

    #[test]
    fn a_label_is_a_word_or_not_told() {
        let label = |text: &[u8]| {
            let mut bytes = superblock(16384, 4096);
            bytes[LABEL][..text.len()].copy_from_slice(text);
            Superblock::parse(&bytes).unwrap().label().map(str::to_owned)
        };
        assert_eq!(
            [b"".as_slice(), b"data", b"twelve_chars"].map(label).map(Option::unwrap),
            ["", "data", "twelve_chars"]
        );
        assert_eq!([b"two words".as_slice(), b"\xff", b"a\nb"].map(label), [None, None, None]);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(noise in proptest::collection::vec(any::<u8>(), SIZE), magic in any::<bool>()) {
            let mut bytes: [u8; SIZE] = noise.try_into().unwrap();
            if magic {
                bytes[..8].copy_from_slice(b"XFSB\0\0\x10\0");
            }
            if let Ok(found) = Superblock::parse(&bytes) {
                let _ = (found.size(), found.with_log(Bytes::new(u64::MAX)), found.smallest_growth());
            }
        }
    }
}
