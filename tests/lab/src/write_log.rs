//! Reads what the kernel's `dm-log-writes` has recorded of a device, and writes it onto another one.
//!
//! The target passes all writes on and keeps them in a log in the order in which they became safe: a write stands there
//! once a flush after it has ended, or at once where it was to be safe at once (FUA). So whatever a prefix of the log
//! makes of the device is what a power cut may leave of it.
//!
//! The format (drivers/md/dm-log-writes.c): a sector that tells how many entries there are; then for each entry a sector
//! with its header, which in a mark is followed by the mark's words, and the data of a write. All numbers are
//! little-endian, and places and lengths are sectors of the recorded device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::Error;

const MAGIC: u64 = 0x6a_7366_7773_6872;
const VERSION: u64 = 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;

/// How long an entry's header is, in bytes.
const HEADER: usize = 32;

/// A log.
#[derive(Debug)]
pub struct WriteLog {
    file: File,
    entries: Vec<Entry>,
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Something was written. In bytes.
    Write {
        /// Where it was written to.
        at: u64,
        /// How much.
        length: u64,
        /// Where in the log it is.
        data: u64,
    },
    /// Nothing was written: a flush was asked for.
    Flush,
    /// Something was discarded, which leaves no promise about it.
    Discard,
    /// Somebody's mark (`dmsetup message DEVICE 0 mark WORDS`).
    Mark(String),
}

impl WriteLog {
    /// Reads the log on a device, or in a file with the content of one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be read, [`Error::Invalid`] when it is no log.
    pub fn open(path: &Path) -> Result<WriteLog, Error> {
        let file = File::open(path).map_err(Error::at("open", path))?;
        let entries = read_entries(&file).map_err(Error::at("read the log of writes in", path))?;
        let entries =
            entries.ok_or_else(|| Error::Invalid(format!("{} is no log of writes", path.display())))?;
        Ok(WriteLog { file, entries })
    }

    /// All entries, in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Writes what the first `count` entries hold onto a device that was as the recorded one was at the beginning.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn replay(&self, count: usize, onto: &File) -> Result<(), Error> {
        let copied = self.entries.iter().take(count).try_for_each(|entry| self.copy(entry, onto));
        copied.map_err(Error::io("replay a log of writes"))
    }

    fn copy(&self, entry: &Entry, onto: &File) -> io::Result<()> {
        let Entry::Write { at, length, data } = *entry else { return Ok(()) };
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, data)?;
        onto.write_all_at(&bytes, at)
    }
}

/// `None` where there is no log.
fn read_entries(file: &File) -> io::Result<Option<Vec<Entry>>> {
    let mut first = [0; HEADER];
    file.read_exact_at(&mut first, 0)?;
    let sector = number(&first, 24) & u64::from(u32::MAX);
    if number(&first, 0) != MAGIC || number(&first, 8) != VERSION || !matches!(sector, 512 | 4096) {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let mut place = sector;
    for _ in 0..number(&first, 16) {
        let mut header = vec![0; usize::try_from(sector).map_err(io::Error::other)?];
        file.read_exact_at(&mut header, place)?;
        place += sector;
        let flags = number(&header, 16);
        entries.push(if flags & MARK != 0 {
            let words = header[HEADER..].split(|byte| *byte == 0).next().unwrap_or_default();
            Entry::Mark(String::from_utf8_lossy(words).into_owned())
        } else if flags & DISCARD != 0 {
            Entry::Discard
        } else if number(&header, 8) == 0 {
            // What it says of its place means nothing: targets above have moved it about.
            Entry::Flush
        } else {
            let [at, length] = [0, 8].map(|field| number(&header, field) * sector);
            let data = place;
            place += length;
            Entry::Write { at, length, data }
        });
    }
    Ok(Some(entries))
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn header(fields: [u64; 4], words: &str) -> Vec<u8> {
        let mut sector = fields.map(u64::to_le_bytes).concat();
        sector.extend(words.as_bytes());
        sector.resize(512, 0);
        sector
    }

    /// As the kernel would write it: a write of two sectors, a flush, a discard, a mark, a write of one sector.
    fn log() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let parts = [
            header([MAGIC, VERSION, 5, 512], ""),
            header([8, 2, 0, 0], ""),
            vec![7; 1024],
            header([u64::MAX, 0, 1, 0], ""),
            header([0, 4, DISCARD, 0], ""),
            header([0, 0, MARK, 4], "here"),
            header([9, 1, 2, 0], ""),
            vec![9; 512],
        ];
        file.write_all(&parts.concat()).unwrap();
        file
    }

    #[test]
    fn a_log_is_read_and_each_prefix_of_it_replayed() {
        let log = log();
        let log = WriteLog::open(log.path()).unwrap();
        let write = |at, length, data| Entry::Write { at, length, data };
        let expected = [
            write(4096, 1024, 1024),
            Entry::Flush,
            Entry::Discard,
            Entry::Mark("here".to_owned()),
            write(4608, 512, 4096),
        ];
        assert_eq!(log.entries(), expected);
        let device = tempfile::NamedTempFile::new().unwrap();
        device.as_file().set_len(8192).unwrap();
        let sectors = || [4096, 4608, 5120].map(|place| std::fs::read(device.path()).unwrap()[place]);
        for (count, held) in [(0, [0, 0, 0]), (4, [7, 7, 0]), (5, [7, 9, 0])] {
            log.replay(count, device.as_file()).unwrap();
            assert_eq!(sectors(), held);
        }
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(WriteLog::open(file.path()).is_err());
        file.as_file().set_len(4096).unwrap();
        assert!(matches!(WriteLog::open(file.path()), Err(Error::Invalid(_))));
    }
}
