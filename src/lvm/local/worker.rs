use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::encode::Words;
use super::home::SystemDir;
use super::parse::{self, Verdict};
use super::process::Processes;
use super::talk::{Silence, Talk};
use crate::exec::{ExecError, Host};
use crate::lvm::{Command, EngineError, Reply};

/// A command on its way to LVM.
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) words: Words,
    /// The lane, which is free again when the command has ended.
    pub(super) lane: OwnedSemaphorePermit,
    pub(super) reply: oneshot::Sender<Result<Reply, EngineError>>,
}

/// When a shell is replaced by a new one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wear {
    /// After so many commands.
    pub(super) commands: u64,
    /// With so much memory of its own, in bytes.
    pub(super) memory: u64,
}

/// How many commands go by between two looks at a shell's memory.
const BETWEEN_LOOKS: u64 = 256;

/// What runs an engine's commands, one after another. It owns the shell, so that a caller who goes away
/// interrupts nothing, and ends when the engine is dropped.
pub(super) struct Worker {
    pub(super) host: Host,
    pub(super) dir: Arc<SystemDir>,
    pub(super) jobs: mpsc::UnboundedReceiver<Job>,
    pub(super) processes: Processes,
    pub(super) tracker: TaskTracker,
    pub(super) how: How,
    /// Shells that were killed. One that cannot die hangs at a disk, and so would its successors.
    pub(super) dying: Vec<JoinHandle<()>>,
}

/// How commands are run.
pub(super) enum How {
    /// In a shell, which is replaced when it is worn.
    Shell(Wear),
    /// Each in a process of its own.
    Process,
}

impl Worker {
    /// Runs until the engine is dropped and every command has ended.
    pub(super) async fn run(mut self) {
        let mut shell = None;
        while let Some(Job { command, words, lane, reply }) = self.jobs.recv().await {
            let answer = match self.how {
                How::Shell(wear) => {
                    let answer = self.in_shell(&mut shell, &command, &words).await;
                    shell = self.spared(shell, wear).await;
                    answer
                }
                How::Process => self.in_process(&command, &words).await,
            };
            // The lane is free before the caller is told, so that its next command finds it so.
            drop(lane);
            let _ = reply.send(answer);
        }
        if let Some(shell) = shell {
            shell.close().await;
        }
        self.dir.remove().await;
    }

    async fn in_process(&self, command: &Command, words: &Words) -> Result<Reply, EngineError> {
        self.processes.run(&self.dir, command, words).await
    }

    /// Asks the shell; once more, in a new one, where the first time cannot have had any effect.
    async fn in_shell(
        &mut self,
        shell: &mut Option<Talk>,
        command: &Command,
        words: &Words,
    ) -> Result<Reply, EngineError> {
        let first = self.ask(shell, command, words).await;
        match first {
            Err(Silence::Unsent) => {}
            Err(Silence::Ended(reason)) if !command.is_change() => {
                tracing::warn!(%command, reason, "an lvm shell ended: asking a new one");
            }
            answer => return conclude(answer, command),
        }
        conclude(self.ask(shell, command, words).await, command)
    }

    /// `Ok` is what LVM answered, or why that is none; a shell whose answer makes no sense is not asked
    /// again.
    async fn ask(
        &mut self,
        shell: &mut Option<Talk>,
        command: &Command,
        words: &Words,
    ) -> Result<Result<Reply, EngineError>, Silence> {
        // A shell that lives looks for its devices anew with each command.
        if let Err(error) = self.dir.path().await {
            return Ok(Err(error));
        }
        let mut talk = match shell.take().filter_alive() {
            Some(talk) => talk,
            None => match self.start().await {
                Ok(talk) => talk,
                Err(error) => return Ok(Err(error)),
            },
        };
        let asked = if command.is_change() {
            Ok(talk.ask(words).await)
        } else {
            tokio::time::timeout(self.processes.limit, talk.ask(words)).await
        };
        let Ok(answer) = asked else {
            self.dying.push(self.tracker.spawn(talk.kill()));
            return Ok(Err(overdue(words, self.processes.limit)));
        };
        let bytes = match answer {
            Ok(bytes) => bytes,
            Err(silence) => {
                self.tracker.spawn(talk.leave());
                return Err(silence);
            }
        };
        let mut reply = parse::reply(command, Verdict::Logged(words.name()), &bytes);
        match &mut reply {
            Ok(reply) => {
                reply.explain(talk.said());
                *shell = Some(talk);
            }
            // The command may still run, whatever it was that looked like its answer.
            Err(_) if command.is_change() => drop(self.tracker.spawn(talk.leave())),
            Err(_) => drop(self.tracker.spawn(talk.close())),
        }
        Ok(reply)
    }

    async fn start(&mut self) -> Result<Talk, EngineError> {
        let limit = self.processes.limit;
        for dying in &mut self.dying {
            if tokio::time::timeout(limit, &mut *dying).await.is_err() {
                let source =
                    io::Error::other("a killed one does not end: is there a disk that does not answer?");
                return Err(ExecError::Start { command: "lvm".to_owned(), source }.into());
            }
        }
        self.dying.clear();
        Ok(Talk::start(&self.host, self.dir.path().await?)?)
    }

    /// The shell, unless it is worn.
    async fn spared(&self, shell: Option<Talk>, wear: Wear) -> Option<Talk> {
        let talk = shell?;
        let asked = talk.asked();
        let looked = asked.is_multiple_of(BETWEEN_LOOKS);
        let memory = if looked { talk.memory().await.unwrap_or(0) } else { 0 };
        if asked < wear.commands && memory < wear.memory {
            return Some(talk);
        }
        tracing::debug!(asked, memory, "replacing an lvm shell");
        self.tracker.spawn(talk.close());
        None
    }
}

fn conclude(
    answer: Result<Result<Reply, EngineError>, Silence>,
    command: &Command,
) -> Result<Reply, EngineError> {
    let lost = |reason| EngineError::Lost { command: command.to_string(), reason };
    match answer {
        Ok(answer) => answer,
        Err(Silence::Unsent) => Err(lost("it ended before it was asked".to_owned())),
        Err(Silence::Ended(reason)) => Err(lost(reason)),
    }
}

fn overdue(words: &Words, limit: Duration) -> EngineError {
    EngineError::Exec(ExecError::Overdue { command: format!("lvm {words}"), limit })
}

/// Shells that died at rest are not asked.
trait FilterAlive {
    fn filter_alive(self) -> Self;
}

impl FilterAlive for Option<Talk> {
    fn filter_alive(self) -> Self {
        self.and_then(|mut talk| talk.is_alive().then_some(talk))
    }
}
