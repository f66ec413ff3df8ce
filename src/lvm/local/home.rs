//! Where private configurations lie: `<run directory>/<number>/<number>/lvm.conf`.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use super::links::Links;
use crate::exec::ExecError;
use crate::lvm::EngineError;

/// How many drivers may run at a time. Two do while one replaces the other.
const MOST: u32 = 64;

/// This driver's part of the run directory. It is another driver's as soon as this one is gone: a lock
/// on a file in it says so, whatever namespaces the two live in.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    _lock: File,
    next: AtomicU64,
}

impl Home {
    /// Takes the first part that no living driver has, and clears away what a dead one left in it.
    ///
    /// This blocks.
    ///
    /// # Errors
    /// The run directory cannot be written, or all parts are taken.
    pub(super) fn claim(run_dir: &Path) -> io::Result<Self> {
        for number in 0..MOST {
            let path = run_dir.join(number.to_string());
            fs::create_dir_all(&path)?;
            if let Some(lock) = lock(&path.join("lock"))? {
                clear(&path)?;
                return Ok(Self { path, _lock: lock, next: AtomicU64::new(0) });
            }
        }
        Err(io::Error::other("all of its parts are taken by other drivers"))
    }
}

/// A locked file whose lock goes on in every process that inherits it; `None` where one still has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn clear(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// An `LVM_SYSTEM_DIR` with one lvm.conf in it, and the devices that LVM may see by it.
#[derive(Debug)]
pub(super) struct SystemDir {
    home: Arc<Home>,
    path: PathBuf,
    links: Links,
    devices: Vec<PathBuf>,
    /// The configuration, or why there can be none.
    text: Result<Arc<str>, String>,
    /// Held by whoever writes it.
    writing: Mutex<()>,
    /// Processes that only look take turns.
    turn: Mutex<()>,
}

/// Leave to start a process that only looks.
pub(super) struct Leave<'a> {
    /// A locked file that the process is to inherit: the lock lives as long as the process does, even
    /// one that was killed and cannot die since a disk does not answer.
    pub(super) alive: File,
    _turn: MutexGuard<'a, ()>,
}

impl SystemDir {
    /// A directory for this configuration, with which LVM sees these devices.
    pub(super) fn new(
        home: Arc<Home>,
        links: Links,
        devices: &[PathBuf],
        text: Result<String, EngineError>,
    ) -> Self {
        let path = home.path.join(home.next.fetch_add(1, Ordering::Relaxed).to_string());
        let text = text.map(Arc::from).map_err(|error| match error {
            EngineError::Unspeakable(why) => why,
            other => other.to_string(),
        });
        let devices = devices.to_owned();
        Self { home, path, links, devices, text, writing: Mutex::default(), turn: Mutex::default() }
    }

    /// The directory's path. It is there when this answers, and so are links to the devices, whoever has cleared
    /// the run directory meanwhile.
    ///
    /// # Errors
    /// It cannot be written, or there is no such configuration.
    pub(super) async fn path(&self) -> Result<&Path, EngineError> {
        let text = self.text.clone().map_err(EngineError::Unspeakable)?;
        let (links, devices) = (self.links.clone(), self.devices.clone());
        let _writing = self.writing.lock().await;
        super::blocking(&self.path, move |path| {
            links.make(&devices)?;
            let file = path.join("lvm.conf");
            if file.try_exists()? {
                return Ok(());
            }
            fs::create_dir_all(path)?;
            fs::write(file, text.as_bytes())
        })
        .await?;
        Ok(&self.path)
    }

    /// How LVM is shown devices.
    pub(super) const fn links(&self) -> &Links {
        &self.links
    }

    /// Waits, for at most `limit`, until no other process looks with this configuration. So a disk that does
    /// not answer costs one hanging process, and not one for each time that somebody asks.
    ///
    /// # Errors
    /// An earlier process is still there.
    pub(super) async fn leave_to_look(&self, limit: Duration) -> Result<Leave<'_>, EngineError> {
        let path = self.path().await?.join("alive");
        let hangs = || {
            let source =
                io::Error::other("an earlier one has not ended: is there a disk that does not answer?");
            EngineError::Exec(ExecError::Start { command: "lvm".to_owned(), source })
        };
        let turn = tokio::time::timeout(limit, self.turn.lock()).await.map_err(|_| hangs())?;
        let locked = super::blocking(&path, lock).await?;
        let alive = locked.ok_or_else(hangs)?;
        Ok(Leave { alive, _turn: turn })
    }

    /// Takes the directory away again. A failure leaves it to the next driver.
    pub(super) async fn remove(&self) {
        if let Err(error) = tokio::fs::remove_dir_all(&self.path).await
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, path = %self.path.display(), home = %self.home.path.display(), "left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_drivers_have_two_homes_and_a_dead_ones_is_taken_over_empty() {
        let run = tempfile::tempdir().unwrap();
        let first = Home::claim(run.path()).unwrap();
        let second = Home::claim(run.path()).unwrap();
        assert_ne!(first.path, second.path);
        let path = first.path.clone();
        fs::create_dir(path.join("7")).unwrap();
        drop(first);
        assert_eq!(Home::claim(run.path()).unwrap().path, path);
        assert!(!path.join("7").exists());
    }

    #[tokio::test]
    async fn a_configuration_is_written_when_it_is_needed_and_removed() {
        let run = tempfile::tempdir().unwrap();
        let home = Arc::new(Home::claim(run.path()).unwrap());
        let (links, device) = (Links::new(run.path()).unwrap(), PathBuf::from("/dev/sda"));
        let devices = std::slice::from_ref(&device);
        let dir = SystemDir::new(Arc::clone(&home), links.clone(), devices, Ok("x".to_owned()));
        assert!(!dir.path.exists());
        for cleared in [run.path(), links.folder()] {
            let path = dir.path().await.unwrap();
            assert_eq!(fs::read_to_string(path.join("lvm.conf")).unwrap(), "x");
            assert_eq!(fs::read_link(links.to(&device)).unwrap(), device);
            fs::remove_dir_all(cleared).unwrap();
        }
        let path = dir.path().await.unwrap().to_owned();
        dir.remove().await;
        assert!(!path.exists());
        let bad = SystemDir::new(home, links, &[], Err(EngineError::Unspeakable("no".to_owned())));
        assert!(matches!(bad.path().await, Err(EngineError::Unspeakable(_))));
    }
}
