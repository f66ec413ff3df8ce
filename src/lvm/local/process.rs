use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::encode::Words;
use super::home::SystemDir;
use super::parse::{self, Verdict};
use crate::exec::{Effect, Host, Invocation, Output, Program, Runner};
use crate::lvm::{Command, EngineError, Reply};

/// What every lvm runs with beside its configuration.
///
/// * `DM_DISABLE_UDEV`: LVM makes device nodes itself, and waits for no semaphore that a udev in another
///   IPC namespace would have to release.
/// * `LVM_SUPPRESS_FD_WARNINGS`: no word about descriptors that it inherits.
/// * `HOME`: the shell writes its history there, and must not.
/// * `MALLOC_…_`: a shell keeps up to 32 MiB of its heap (mallopt(3)) for its next command. It gave it all back after
///   each, and with many LVs had it mapped again page by page.
pub(super) const ENVIRONMENT: [(&str, &str); 5] = [
    ("DM_DISABLE_UDEV", "1"),
    ("LVM_SUPPRESS_FD_WARNINGS", "1"),
    ("HOME", "/dev/null"),
    ("MALLOC_TRIM_THRESHOLD_", "33554432"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
];

/// Runs LVM commands as processes of their own.
#[derive(Debug, Clone)]
pub(super) struct Processes {
    host: Host,
    tracker: TaskTracker,
    /// How long a command that only looks may take.
    pub(super) limit: Duration,
}

impl Processes {
    pub(super) const fn new(host: Host, tracker: TaskTracker, limit: Duration) -> Self {
        Self { host, tracker, limit }
    }

    /// Runs a command and reads its answer.
    ///
    /// # Errors
    /// As [`crate::lvm::Engine::run`].
    pub(super) async fn run(
        &self,
        dir: &SystemDir,
        command: &Command,
        words: &Words,
    ) -> Result<Reply, EngineError> {
        let output = if command.is_change() {
            self.change(dir.path().await?, command, words).await?
        } else {
            self.query(dir, words.as_slice()).await?
        };
        let Some(code) = output.code else {
            let reason = format!("a signal ended it: {}", output.stderr);
            return Err(EngineError::Lost { command: command.to_string(), reason });
        };
        let mut reply = parse::reply(command, Verdict::Exited(code == 0), &output.stdout)?;
        reply.explain(output.stderr);
        Ok(reply)
    }

    /// Runs a command that only looks. It is killed when it takes too long or nobody waits any more.
    ///
    /// # Errors
    /// As [`Runner::run`]; and when an earlier one hangs.
    pub(super) async fn query<A: Into<OsString> + Clone>(
        &self,
        dir: &SystemDir,
        arguments: &[A],
    ) -> Result<Output, EngineError> {
        let invocation = invocation(dir.path().await?, Effect::Query(self.limit), arguments.iter().cloned());
        let leave = dir.leave_to_look(self.limit).await?;
        Ok(self.host.run(invocation.with_input(leave.alive)).await?)
    }

    /// Runs a change to its end in a task of its own: without a reader lvm would die of a broken pipe.
    async fn change(
        &self,
        system_dir: &Path,
        command: &Command,
        words: &Words,
    ) -> Result<Output, EngineError> {
        let invocation = invocation(system_dir, Effect::Change, words.as_slice().iter().cloned());
        let host = self.host.clone();
        let task = self.tracker.spawn(async move { host.run(invocation).await });
        let output = task
            .await
            .map_err(|error| EngineError::Lost { command: command.to_string(), reason: error.to_string() })?;
        Ok(output?)
    }
}

/// An lvm with our configuration and environment.
pub(super) fn invocation<A: Into<OsString>>(
    system_dir: &Path,
    effect: Effect,
    arguments: impl IntoIterator<Item = A>,
) -> Invocation {
    let mut invocation = Invocation::query(Program::Lvm, arguments);
    invocation.effect = effect;
    let fixed = ENVIRONMENT.into_iter().map(|(name, value)| (name, OsString::from(value)));
    invocation.environment = fixed.chain([("LVM_SYSTEM_DIR", system_dir.into())]).collect();
    invocation
}

impl Reply {
    /// Gives a failure that LVM's log says nothing of the words that LVM wrote to standard error.
    pub(super) fn explain(&mut self, stderr: String) {
        if !self.success && self.messages.is_empty() && !stderr.is_empty() {
            self.messages.push(stderr);
        }
    }
}
