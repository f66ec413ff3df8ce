//! The real machine: LVM's own commands, and its disks.
//!
//! ```text
//!   LocalBackend ─┬─ open ──> LocalEngine ── Worker ─┬─ Talk: one lvm shell      (engine.rs, worker.rs, talk.rs)
//!                 │                                  └─ Processes: one per command (process.rs)
//!                 ├─ look: every disk, without a filter                            (look.rs)
//!                 ├─ fingerprint, flush: metadata headers on the disks             (disks.rs, label.rs)
//!                 └─ back_up: vgcfgbackup into a directory of the host             (backup.rs)
//! ```
//!
//! Commands are written by `encode`, and answers read by `parse` and `rows`; each engine has a private
//! configuration (`config`) in a directory of its own (`home`).

mod backup;
mod config;
mod disks;
mod encode;
mod engine;
mod fields;
mod filter;
mod frames;
mod home;
mod label;
mod links;
mod look;
mod options;
mod parse;
mod process;
mod rows;
mod system_id;
mod talk;
mod worker;

pub use options::{EngineKind, LocalOptions};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

use backup::Backups;
use config::Sight;
use disks::Disks;
use engine::LocalEngine;
use home::{Home, SystemDir};
use links::Links;
use process::Processes;
use worker::{How, Wear, Worker};

use super::{Backend, Engine, EngineError, Fingerprint, PvRow};
use crate::exec::Host;
use crate::types::VgName;

/// LVM and the disks of this machine.
///
/// Nothing that it starts is interrupted by a caller who goes away. Each engine has a task on the tracker,
/// which ends when the engine has been dropped and its last command has ended.
pub struct LocalBackend {
    host: Host,
    tracker: TaskTracker,
    options: LocalOptions,
    shared: config::Host,
    home: Arc<Home>,
    links: Links,
    processes: Processes,
    everything: SystemDir,
    disks: Disks,
    backups: Backups,
}

impl LocalBackend {
    /// Takes a place in the run directory, and asks LVM by which name it knows this machine.
    ///
    /// # Errors
    /// The run directory cannot be written, or LVM cannot be asked.
    pub async fn start(host: Host, tracker: TaskTracker, options: LocalOptions) -> Result<Self, EngineError> {
        let system_id = match &options.system_id {
            Some(id) => Some(id.clone()),
            None => system_id::ask(&host, &options.host_config).await?,
        };
        let shared = config::Host { locking_dir: options.locking_dir.clone(), system_id };
        let links = Links::new(&options.run_dir)?;
        let home = Arc::new(claim(&options.run_dir).await?);
        let processes = Processes::new(host.clone(), tracker.clone(), options.query_limit);
        let everything =
            SystemDir::new(Arc::clone(&home), links.clone(), &[], config::render(&shared, Sight::Everything));
        let backups = Backups::new(options.backup_dir.clone());
        Ok(Self {
            host,
            tracker,
            options,
            shared,
            home,
            links,
            processes,
            everything,
            disks: Disks::default(),
            backups,
        })
    }

    fn system_dir(&self, devices: &[PathBuf]) -> SystemDir {
        let text = config::render(&self.shared, Sight::Only(devices, &self.links));
        SystemDir::new(Arc::clone(&self.home), self.links.clone(), devices, text)
    }
}

/// Runs something that blocks on files of the driver's own.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
) -> Result<T, EngineError> {
    let owned = path.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&owned)).await;
    let done = done.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    done.map_err(|source| EngineError::disk(path, "cannot be used", source))
}

async fn claim(run_dir: &Path) -> Result<Home, EngineError> {
    blocking(run_dir, Home::claim).await
}

#[async_trait::async_trait]
impl Backend for LocalBackend {
    async fn look(&self) -> Result<Vec<PvRow>, EngineError> {
        look::look(&self.processes, &self.everything).await
    }

    fn system_id(&self) -> Option<&str> {
        self.shared.system_id.as_deref()
    }

    /// Must be called on the runtime: it starts the engine's task.
    fn open(&self, _vg: &VgName, devices: &[PathBuf]) -> Arc<dyn Engine> {
        let (sender, jobs) = mpsc::unbounded_channel();
        let dir = Arc::new(self.system_dir(devices));
        let how = match self.options.kind {
            EngineKind::Process => How::Process,
            EngineKind::Shell => How::Shell(Wear {
                commands: self.options.commands_per_shell,
                memory: self.options.memory_per_shell.get(),
            }),
        };
        let worker = Worker {
            host: self.host.clone(),
            dir: Arc::clone(&dir),
            jobs,
            processes: self.processes.clone(),
            tracker: self.tracker.clone(),
            how,
            dying: Vec::new(),
        };
        self.tracker.spawn(worker.run());
        let lane = Arc::new(Semaphore::new(1));
        Arc::new(LocalEngine { dir, jobs: sender, lane, processes: self.processes.clone() })
    }

    async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
        self.disks.fingerprint(devices).await
    }

    async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.disks.flush(devices).await
    }

    async fn back_up(&self, vg: &VgName, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.backups.make(&self.processes, vg, devices, || self.system_dir(devices)).await
    }
}
