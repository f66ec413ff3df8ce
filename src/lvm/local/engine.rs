use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::encode::{Words, encode};
use super::home::SystemDir;
use super::process::Processes;
use super::worker::Job;
use crate::lvm::{Command, Engine, EngineError, Reply};
use crate::types::VgName;

/// How long a report waits for a change before it goes its own way, in a process: a change may be
/// waiting for a lock, and reports need none.
const PATIENCE: Duration = Duration::from_millis(500);

/// The engine of one group on this machine.
pub(super) struct LocalEngine {
    pub(super) dir: Arc<SystemDir>,
    pub(super) jobs: mpsc::UnboundedSender<Job>,
    /// One command at a time.
    pub(super) lane: Arc<Semaphore>,
    pub(super) processes: Processes,
}

#[async_trait::async_trait]
impl Engine for LocalEngine {
    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError> {
        let words = encode(vg, &self.linked(command))?;
        tracing::debug!(%vg, lvm = %words, "running");
        let links = self.dir.links();
        let mut reply =
            self.ask(command, words).await.map_err(|error| error.reworded(|words| links.plain(words)))?;
        for words in &mut reply.messages {
            *words = links.plain(words);
        }
        for range in reply.segments.iter_mut().flat_map(|segment| &mut segment.ranges) {
            range.device = links.plain(&range.device);
        }
        for disk in &mut reply.unallocatable {
            disk.device = links.plain(&disk.device.display().to_string()).into();
        }
        Ok(reply)
    }
}

impl LocalEngine {
    /// The command, with LVM's names of devices in it.
    fn linked(&self, command: &Command) -> Command {
        let mut command = command.clone();
        if let Command::Extend { from, .. } = &mut command {
            for range in from {
                range.device = self.dir.links().to(Path::new(&range.device)).display().to_string();
            }
        }
        command
    }

    async fn ask(&self, command: &Command, words: Words) -> Result<Reply, EngineError> {
        let lane = Arc::clone(&self.lane).acquire_owned();
        let lane = if command.is_change() {
            lane.await
        } else {
            match tokio::time::timeout(PATIENCE, lane).await {
                Ok(lane) => lane,
                Err(_) => return self.processes.run(&self.dir, command, &words).await,
            }
        };
        let lost =
            |reason: &str| EngineError::Lost { command: command.to_string(), reason: reason.to_owned() };
        let lane = lane.map_err(|_| lost("its engine was closed"))?;
        let (reply, answer) = oneshot::channel();
        let job = Job { command: command.clone(), words, lane, reply };
        self.jobs.send(job).map_err(|_| lost("its engine has ended"))?;
        answer.await.map_err(|_| lost("its engine ended"))?
    }
}
