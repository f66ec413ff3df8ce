//! LVM's label on a disk, as far as it tells where metadata lies (lvm2, lib/format_text/layout.h).

/// How much of a disk's beginning holds the label, in bytes: it stands in one of four sectors of 512
/// bytes, whatever the disk's own sectors are.
pub(super) const REGION: usize = 4 * SECTOR;

/// The size of a label, and of the header of a metadata area, in bytes.
pub(super) const SECTOR: usize = 512;

/// What stands at the beginning of a physical volume.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The whole sector: it holds the disk's identity and size.
    pub(super) sector: Vec<u8>,
    /// Where on the disk each metadata area begins, in bytes.
    pub(super) areas: Vec<u64>,
}

impl Label {
    /// Finds the label in the first [`REGION`] bytes of a disk; `None` where there is none.
    pub(super) fn find(region: &[u8]) -> Option<Self> {
        let sectors = region.chunks_exact(SECTOR).take(4).zip(0u64..);
        sectors.filter_map(|(sector, number)| Self::read(sector, number)).next()
    }

    fn read(sector: &[u8], number: u64) -> Option<Self> {
        let own = sector.starts_with(b"LABELONE") && sector.get(24..32)? == b"LVM2 001";
        if !own || long(sector, 8)? != number {
            return None;
        }
        let header = usize::try_from(short(sector, 20)?).ok()?;
        // The disk's UUID and its size; then two lists of places, of data and of metadata areas, each
        // of which ends with an empty place.
        let (_, areas) = places(sector, header + 32 + 8)?;
        let (metadata, _) = places(sector, areas)?;
        Some(Self { sector: sector.to_vec(), areas: metadata })
    }
}

/// Where the places of a list begin, and where the next list begins in the sector.
fn places(sector: &[u8], mut at: usize) -> Option<(Vec<u64>, usize)> {
    let mut begins = Vec::new();
    loop {
        let (begin, size) = (long(sector, at)?, long(sector, at + 8)?);
        at += 16;
        if begin == 0 && size == 0 {
            return Some((begins, at));
        }
        begins.push(begin);
    }
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn short(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A disk's beginning with a label in this sector.
    fn region(number: u64, areas: &[u64]) -> Vec<u8> {
        let mut region = vec![0; REGION];
        let start = usize::try_from(number).unwrap() * SECTOR;
        let mut put =
            |at: usize, bytes: &[u8]| region[start + at..start + at + bytes.len()].copy_from_slice(bytes);
        put(0, b"LABELONE");
        put(8, &number.to_le_bytes());
        put(20, &32u32.to_le_bytes());
        put(24, b"LVM2 001");
        put(32 + 40, &(1u64 << 20).to_le_bytes());
        for (place, area) in areas.iter().enumerate() {
            put(32 + 40 + 32 + 16 * place, &area.to_le_bytes());
            put(32 + 40 + 32 + 16 * place + 8, &4096u64.to_le_bytes());
        }
        region
    }

    #[test]
    fn metadata_areas_are_found_in_whichever_sector_the_label_is() {
        for number in 0..4 {
            assert_eq!(Label::find(&region(number, &[4096, 1 << 30])).unwrap().areas, [4096, 1 << 30]);
        }
        assert_eq!(Label::find(&region(1, &[])).unwrap().areas, [0u64; 0]);
    }

    #[test]
    fn what_is_no_label_is_none() {
        assert_eq!(Label::find(&[0; REGION]), None);
        let mut moved = region(1, &[4096]);
        moved[SECTOR + 8] = 2;
        assert_eq!(Label::find(&moved), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), at in any::<u32>()) {
            let mut region = region(1, &[4096]);
            region[SECTOR + 20..SECTOR + 24].copy_from_slice(&at.to_le_bytes());
            let _ = Label::find(&region);
            region.splice(SECTOR + 32..REGION, bytes);
            let _ = Label::find(&region);
        }
    }
}
