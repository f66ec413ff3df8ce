//! What a pod does with its volume: it writes stamps to places, and reads what is there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::facts::{Facts, NOTHING};
use crate::driver::Mode;

/// What one place holds: a block of a raw volume, or a file.
const BLOCK: usize = 4096;

/// How many files a user keeps.
const FILES: u64 = 8;

/// The name of a file that is not finished.
const UNFINISHED: &str = "unfinished";

/// How many places a volume of that size has.
pub(super) const fn places(mode: Mode, size: u64) -> u64 {
    match mode {
        Mode::Ext4 | Mode::Xfs | Mode::Btrfs => FILES,
        Mode::Block => size / BLOCK as u64,
    }
}

/// Writes a stamp to a place of the volume at `target`. When this returns, it is on the disk.
pub(super) fn write(mode: Mode, target: &Path, place: u64, stamp: u64) -> io::Result<()> {
    let data = stamp.to_le_bytes().repeat(BLOCK / size_of::<u64>());
    match mode {
        Mode::Block => {
            let device = File::options().write(true).open(target)?;
            device.write_all_at(&data, place * BLOCK as u64)?;
            device.sync_all()
        }
        Mode::Ext4 | Mode::Xfs | Mode::Btrfs => {
            let unfinished = target.join(UNFINISHED);
            let mut file = File::create(&unfinished)?;
            file.write_all(&data)?;
            file.sync_all()?;
            fs::rename(unfinished, target.join(place.to_string()))?;
            File::open(target)?.sync_all()
        }
    }
}

/// Holds that the volume at `target` holds what is known of it, and nothing else. Gives what it holds.
pub(super) fn read(mode: Mode, target: &Path, facts: &Facts) -> Result<BTreeMap<u64, u64>, String> {
    let found = match mode {
        Mode::Block => blocks(target),
        Mode::Ext4 | Mode::Xfs | Mode::Btrfs => files(target),
    };
    let found = found.map_err(|error| format!("{} cannot be read: {error}", target.display()))?;
    for place in found.keys().chain(facts.content.keys()) {
        let (stamp, allowed) = (found.get(place).copied().unwrap_or(NOTHING), facts.at(*place));
        if !allowed.contains(&stamp) {
            return Err(format!("place {place} holds {stamp}, and should hold one of {allowed:?}"));
        }
    }
    Ok(found)
}

/// All blocks of a device that are not zero.
fn blocks(device: &Path) -> io::Result<BTreeMap<u64, u64>> {
    const CHUNK: usize = 256 * BLOCK;
    let (mut device, mut chunk) = (File::open(device)?, vec![0; CHUNK]);
    let (mut found, mut place) = (BTreeMap::new(), 0);
    loop {
        let length = device.read(&mut chunk)?;
        if length == 0 {
            return Ok(found);
        }
        for block in chunk[..length].chunks(BLOCK) {
            if block.iter().any(|byte| *byte != 0) {
                found.insert(place, stamp(block)?);
            }
            place += 1;
        }
    }
}

/// All files in a folder but for those that are no user's.
fn files(folder: &Path) -> io::Result<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if [UNFINISHED, "lost+found"].contains(&name.as_str()) {
            continue;
        }
        let place = name.parse().map_err(|_| io::Error::other(format!("nobody has written {name:?}")))?;
        found.insert(place, stamp(&fs::read(folder.join(name))?)?);
    }
    Ok(found)
}

/// The stamp that fills a block.
fn stamp(block: &[u8]) -> io::Result<u64> {
    let (words, rest) = block.as_chunks();
    match words.first() {
        Some(first) if rest.is_empty() && block.len() == BLOCK && words.iter().all(|word| word == first) => {
            Ok(u64::from_le_bytes(*first))
        }
        _ => Err(io::Error::other(format!(
            "nobody has written {:?} of {} bytes",
            &block[..block.len().min(16)],
            block.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::call::Call;

    fn holding(place: u64, stamp: u64) -> Facts {
        Facts::ABSENT.after(&Call::Create { size: 8 }).after(&Call::Write { place, stamp })
    }

    #[test]
    fn what_was_written_is_read_and_what_is_lost_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        write(Mode::Ext4, path, 3, 77).unwrap();
        assert_eq!(read(Mode::Ext4, path, &holding(3, 77)).unwrap(), [(3, 77)].into());
        assert!(read(Mode::Ext4, path, &holding(3, 78)).unwrap_err().contains("holds 77"));
        assert!(read(Mode::Ext4, path, &holding(4, 77)).unwrap_err().contains("should hold one of {0}"));
        fs::write(path.join("3"), "torn").unwrap();
        assert!(read(Mode::Ext4, path, &holding(3, 77)).unwrap_err().contains("nobody has written"));
    }

    #[test]
    fn bytes_of_others_on_a_raw_volume_are_told() {
        let device = tempfile::NamedTempFile::new().unwrap();
        device.as_file().set_len(64 * BLOCK as u64).unwrap();
        write(Mode::Block, device.path(), 5, 77).unwrap();
        assert_eq!(read(Mode::Block, device.path(), &holding(5, 77)).unwrap(), [(5, 77)].into());
        write(Mode::Block, device.path(), 9, 88).unwrap();
        assert!(read(Mode::Block, device.path(), &holding(5, 77)).unwrap_err().contains("place 9 holds 88"));
    }
}
