use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use tokio_util::sync::CancellationToken;

use super::{DeviceError, Pinned, blocking};

/// How much is zeroed between two looks at whether to stop, in bytes: about half a second of a slow disk.
const CHUNK: u64 = 64 << 20;

/// How much is written at once where the device cannot zero by itself, in bytes.
const WRITE: usize = 1 << 20;

/// What buffers and lengths of direct I/O are multiples of, whatever the disk (open(2), `O_DIRECT`).
const ALIGNMENT: usize = 4096;

/// The smallest part of a device, in bytes.
const SECTOR: u64 = 512;

/// How zeroing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeroed {
    /// The whole range is zero, and survives a power cut.
    Done,
    /// It was told to stop: zero up to this byte, and nothing is known to be on the disk for good.
    Stopped {
        /// The first byte that was not zeroed.
        at: u64,
    },
}

/// Zeroes the bytes of `range` on a device, which should be pinned with `Access::Exclusive`.
///
/// The work is done in chunks of 64 MiB and looks at `stop` between them. It goes on when the caller's
/// future is dropped; `lock` is what it holds for as long as it writes, and closes at its end: the
/// descriptor of a lock file, so that nobody else begins with this volume meanwhile.
///
/// # Errors
/// A range that is not on the device or not made of whole sectors; the disk failed.
pub async fn zero(
    pinned: &Pinned,
    range: Range<u64>,
    lock: Option<File>,
    stop: CancellationToken,
) -> Result<Zeroed, DeviceError> {
    let pinned = pinned.clone();
    blocking(move || {
        let ended = zero_now(&pinned, range, &stop);
        // In this order, so that whoever gets the lock finds the device free, if the caller let go of it.
        drop(pinned);
        drop(lock);
        ended
    })
    .await
}

fn zero_now(pinned: &Pinned, range: Range<u64>, stop: &CancellationToken) -> Result<Zeroed, DeviceError> {
    let size = pinned.size_now()?;
    if range.start > range.end || range.end > size || [range.start, range.end].iter().any(|b| b % SECTOR != 0)
    {
        return Err(DeviceError::Range { range, size });
    }
    let mut way = Way::Kernel;
    let mut at = range.start;
    while at < range.end {
        if stop.is_cancelled() {
            return Ok(Zeroed::Stopped { at });
        }
        let end = range.end.min(at.saturating_add(CHUNK));
        way = way.zero(pinned, at..end)?;
        at = end;
    }
    pinned.flush_now()?;
    Ok(Zeroed::Done)
}

/// How a device is zeroed.
enum Way {
    /// The kernel does it, by a command of the device where there is one (fallocate(2)).
    Kernel,
    /// Zeroes are written past the page cache.
    Direct(File),
}

impl Way {
    /// Zeroes one chunk, and gives the way that the next one takes.
    fn zero(self, pinned: &Pinned, chunk: Range<u64>) -> Result<Self, DeviceError> {
        let failed =
            |error: std::io::Error| DeviceError::io(&pinned.device().path, "cannot be zeroed", error);
        match self {
            Self::Kernel => match zero_range(pinned.file(), &chunk) {
                Ok(()) => Ok(Self::Kernel),
                Err(Errno::EOPNOTSUPP) => Self::Direct(direct(pinned)?).zero(pinned, chunk),
                Err(error) => Err(failed(error.into())),
            },
            Self::Direct(file) => {
                write_zeroes(&file, chunk).map_err(failed)?;
                Ok(Self::Direct(file))
            }
        }
    }
}

fn zero_range(file: &File, chunk: &Range<u64>) -> Result<(), Errno> {
    let offset = i64::try_from(chunk.start).map_err(|_| Errno::EFBIG)?;
    let length = i64::try_from(chunk.end - chunk.start).map_err(|_| Errno::EFBIG)?;
    let flags = FallocateFlags::FALLOC_FL_ZERO_RANGE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    loop {
        match fallocate(file, flags, offset, length) {
            Err(Errno::EINTR) => {}
            ended => return ended,
        }
    }
}

/// The same open device once more, past the page cache.
fn direct(pinned: &Pinned) -> Result<File, DeviceError> {
    let same = format!("/proc/self/fd/{}", pinned.file().as_raw_fd());
    OpenOptions::new().write(true).custom_flags(nix::libc::O_DIRECT).open(same).map_err(|source| {
        DeviceError::io(&pinned.device().path, "cannot be opened for direct writes", source)
    })
}

fn write_zeroes(file: &File, chunk: Range<u64>) -> std::io::Result<()> {
    let buffer = vec![0_u8; WRITE + ALIGNMENT];
    let skip = buffer.as_ptr().align_offset(ALIGNMENT);
    let zeroes = buffer.get(skip..skip + WRITE).unwrap_or(&buffer);
    let mut at = chunk.start;
    while at < chunk.end {
        let length = usize::try_from(chunk.end - at).unwrap_or(WRITE).min(WRITE);
        file.write_all_at(&zeroes[..length], at)?;
        at += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_zero_exactly_the_range() {
        let file = tempfile::tempfile().unwrap();
        for by_kernel in [true, false] {
            file.write_all_at(&vec![0xa5; 3 << 20], 0).unwrap();
            let range = 512..(2 << 20) + 1536;
            if by_kernel {
                zero_range(&file, &range).unwrap();
            } else {
                write_zeroes(&file, range.clone()).unwrap();
            }
            let mut found = vec![1; 3 << 20];
            file.read_exact_at(&mut found, 0).unwrap();
            for (at, byte) in found.iter().enumerate() {
                assert_eq!(*byte == 0, range.contains(&(at as u64)), "byte {at}");
            }
        }
    }
}
