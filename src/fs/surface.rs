use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::{FsError, blocking};

/// How much is read at either end of a device, in bytes: where all that blkid knows has its marks.
const EDGE: u64 = 1 << 20;

/// What pages start at multiples of, in bytes.
const PAGE: u64 = 4096;

/// How long reading both edges may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Reads the first and the last MiB of a device from the disk itself, and tells whether all of it is
/// zero.
///
/// blkid cannot tell a device that it does not know from one that it could not read: it ends with 2 for
/// both. Whoever got a 2 asks here.
///
/// # Errors
/// Some of it cannot be read, or the disk does not answer.
pub(super) async fn is_zero(device: &Path) -> Result<bool, FsError> {
    let path: PathBuf = device.to_owned();
    let overdue = |_| FsError::Overdue { path: device.to_owned(), limit: LIMIT };
    let read = blocking(move || {
        edges(&path).map_err(|source| FsError::io(&path, "its first and last MiB cannot be read", source))
    });
    tokio::time::timeout(LIMIT, read).await.map_err(overdue)?
}

fn edges(device: &Path) -> std::io::Result<bool> {
    let mut file = File::open(device)?;
    let size = file.seek(SeekFrom::End(0))?;
    if size == 0 {
        // Also what a folder or a missing disk looks like: nothing was read, so nothing is known.
        return Err(std::io::Error::other("the device has no size"));
    }
    let last = size.saturating_sub(EDGE) / PAGE * PAGE;
    let first = read(&file, 0, size.min(EDGE))?;
    let last = read(&file, last, size - last)?;
    Ok(first.iter().chain(&last).all(|byte| *byte == 0))
}

/// Reads past what the page cache holds: a disk that is gone may still be readable there.
fn read(file: &File, at: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let wide = |number: u64| i64::try_from(number).map_err(std::io::Error::other);
    posix_fadvise(file, wide(at)?, wide(length)?, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    let mut bytes = vec![0; usize::try_from(length).map_err(std::io::Error::other)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(size: u64, dirty: &[u64]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(size).unwrap();
        dirty.iter().for_each(|at| file.as_file().write_all_at(b"x", *at).unwrap());
        file
    }

    #[tokio::test]
    async fn both_edges_count() {
        let size = (8 << 20) + 512;
        for (dirty, zero) in [(&[][..], true), (&[0], false), (&[size - 1], false), (&[4 << 20], true)] {
            assert_eq!(is_zero(device(size, dirty).path()).await.unwrap(), zero, "{dirty:?}");
        }
        assert!(!is_zero(device(1000, &[999]).path()).await.unwrap());
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_no_finding() {
        assert!(is_zero(Path::new("/nonexistent/device")).await.is_err());
        assert!(is_zero(Path::new("/")).await.is_err());
        assert!(is_zero(device(0, &[]).path()).await.is_err());
    }
}
