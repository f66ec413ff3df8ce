//! Reads and flushes the disks under volume groups, past every cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::label::{Label, REGION, SECTOR};
use crate::lvm::{EngineError, Fingerprint};

/// What is read at a time, in bytes, and how places and memory are aligned: fits disks with sectors of
/// 512 bytes and of 4096.
const BLOCK: usize = 4096;

/// The headers of all metadata areas on `devices`, and what tells the disks apart.
///
/// # Errors
/// A device is gone, cannot be read, or holds no label any more.
pub(super) async fn fingerprint(devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
    each(devices, |disk| disk.headers()).await.map(|headers| Fingerprint(headers.concat()))
}

/// Flushes every disk of `devices` that holds metadata. LVM commits past the page cache, and leaves it in
/// the disk's own.
///
/// # Errors
/// A device did not take the flush.
pub(super) async fn flush(devices: &[PathBuf]) -> Result<(), EngineError> {
    each(devices, |disk| disk.flush()).await.map(drop)
}

/// Does something with each device, on a thread that may block.
async fn each<T: Send + 'static>(
    devices: &[PathBuf],
    act: impl Fn(&Disk<'_>) -> io::Result<T> + Send + 'static,
) -> Result<Vec<T>, EngineError> {
    let devices = devices.to_vec();
    let work = move || devices.iter().map(|device| on(device, &act)).collect();
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(EngineError::disk(Path::new("/dev"), "cannot be read", io::Error::other(error))),
    }
}

fn on<T>(device: &Path, act: impl Fn(&Disk<'_>) -> io::Result<T>) -> Result<T, EngineError> {
    let disk = Disk::open(device).map_err(|source| EngineError::disk(device, "cannot be read", source))?;
    act(&disk).map_err(|source| EngineError::disk(device, "its metadata cannot be read or flushed", source))
}

/// An opened disk. It is opened each time: a path can come to mean another disk.
struct Disk<'a> {
    path: &'a Path,
    file: File,
    label: Label,
}

impl<'a> Disk<'a> {
    fn open(path: &'a Path) -> io::Result<Self> {
        let flags = (OFlag::O_DIRECT | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let label = Label::find(&read(&file, 0, REGION)?);
        let label = label.ok_or_else(|| io::Error::other("there is no LVM label on it"))?;
        Ok(Self { path, file, label })
    }

    fn headers(&self) -> io::Result<Vec<u8>> {
        let mut bytes = self.path.as_os_str().as_encoded_bytes().to_vec();
        bytes.extend_from_slice(&self.label.sector);
        for area in &self.label.areas {
            bytes.extend(read(&self.file, *area, SECTOR)?);
        }
        Ok(bytes)
    }

    fn flush(&self) -> io::Result<()> {
        if self.label.areas.is_empty() { Ok(()) } else { self.file.sync_all() }
    }
}

/// Reads `length` bytes that lie within one block.
fn read(file: &File, place: u64, length: usize) -> io::Result<Vec<u8>> {
    let within = usize::try_from(place % BLOCK as u64).map_err(io::Error::other)?;
    let mut memory = vec![0; 2 * BLOCK];
    let aligned = memory.as_ptr().align_offset(BLOCK);
    let block = memory.get_mut(aligned..aligned + BLOCK).ok_or(io::ErrorKind::OutOfMemory)?;
    let count = file.read_at(block, place - within as u64)?;
    let wanted = block[..count].get(within..within + length);
    wanted.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
