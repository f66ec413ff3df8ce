//! Reads and flushes the disks under volume groups, past every cache.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::fcntl::OFlag;

use super::label::{Label, REGION, SECTOR};
use crate::lvm::{EngineError, Fingerprint};

/// What is read at a time, in bytes, and how places and memory are aligned: fits disks with sectors of
/// 512 bytes and of 4096.
const BLOCK: usize = 4096;

/// How long the headers on one disk may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads and flushes disks. Of each disk one header is read at a time, so that a disk that does not
/// answer costs one thread.
#[derive(Debug, Default)]
pub(super) struct Disks(Mutex<HashMap<PathBuf, Gate>>);

type Gate = Arc<tokio::sync::Mutex<()>>;

impl Disks {
    /// The headers of all metadata areas on `devices`, and what tells the disks apart.
    ///
    /// # Errors
    /// A device is gone, does not answer, cannot be read, or holds no label any more.
    pub(super) async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
        let mut bytes = Vec::new();
        for device in devices {
            let read = tokio::time::timeout(PATIENCE, self.headers(device)).await;
            let late = |_| EngineError::disk(device, "does not answer", io::ErrorKind::TimedOut.into());
            bytes.extend(read.map_err(late)??);
        }
        Ok(Fingerprint(bytes))
    }

    async fn headers(&self, device: &Path) -> Result<Vec<u8>, EngineError> {
        let gate = Arc::clone(self.gates().entry(device.to_owned()).or_default());
        let open = gate.lock_owned().await;
        on(device, move |disk| {
            let headers = disk.headers();
            drop(open);
            headers
        })
        .await
    }

    fn gates(&self) -> MutexGuard<'_, HashMap<PathBuf, Gate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes every disk of `devices` that holds metadata, however long it takes. LVM commits past the
    /// page cache, and leaves it in the disk's own.
    ///
    /// # Errors
    /// A device did not take the flush.
    pub(super) async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError> {
        for device in devices {
            on(device, |disk| disk.flush()).await?;
        }
        Ok(())
    }
}

/// Does something with a disk, on a thread that may block.
async fn on<T: Send + 'static>(
    device: &Path,
    act: impl FnOnce(&Disk) -> io::Result<T> + Send + 'static,
) -> Result<T, EngineError> {
    let path = device.to_owned();
    let done = tokio::task::spawn_blocking(move || act(&Disk::open(path)?)).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|source| EngineError::disk(device, "its metadata cannot be read or flushed", source))
}

/// An opened disk. It is opened each time: a path can come to mean another disk.
struct Disk {
    path: PathBuf,
    file: File,
    label: Label,
}

impl Disk {
    fn open(path: PathBuf) -> io::Result<Self> {
        let flags = (OFlag::O_DIRECT | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
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
