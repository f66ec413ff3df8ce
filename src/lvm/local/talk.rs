use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::encode::Words;
use super::frames::Frames;
use super::process;
use crate::exec::{Effect, ExecError, Host, Tail};

/// How long a shell may take to end when it has nothing to do any more.
const FAREWELL: Duration = Duration::from_secs(10);

/// The most that an answer to a query may hold, in bytes; as for a process (see `exec`).
const MOST: usize = 64 << 20;

/// One lvm shell. A command goes in on its standard input; what `LVM_REPORT_FD` names, its standard
/// output, brings one JSON object back, whose end is the command's end.
pub(super) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    frames: Frames,
    tail: Tail,
    asked: u64,
}

/// Why a shell gave no answer.
pub(super) enum Silence {
    /// The command did not reach it as a whole: it had no effect.
    Unsent,
    /// It ended; the command may have had its effect.
    Ended(String),
}

impl Talk {
    /// Starts a shell.
    ///
    /// # Errors
    /// It did not start.
    pub(super) fn start(host: &Host, system_dir: &Path) -> Result<Self, ExecError> {
        let shell = process::invocation(system_dir, Effect::Change, [] as [&str; 0]);
        let shell = shell.with_variable("LVM_REPORT_FD", "1");
        let mut child = host.spawn_piped(&shell)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let source = std::io::Error::other("it has no pipes");
            return Err(ExecError::Start { command: shell.to_string(), source });
        };
        let stderr = child.stderr.take();
        let (frames, tail) = (Frames::default(), Tail::default());
        Ok(Self { child, stdin: Some(stdin), stdout, stderr, frames, tail, asked: 0 })
    }

    /// How many commands it was asked.
    pub(super) const fn asked(&self) -> u64 {
        self.asked
    }

    /// What it wrote to standard error about the last command.
    pub(super) fn said(&self) -> String {
        self.tail.text()
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks one command, and waits for its answer for ever.
    ///
    /// A newline is what makes the shell act: while it has not taken the whole line it has done nothing.
    pub(super) async fn ask(&mut self, words: &Words) -> Result<Vec<u8>, Silence> {
        self.asked += 1;
        self.frames.clear();
        self.tail = Tail::default();
        let Some(stdin) = &mut self.stdin else { return Err(Silence::Unsent) };
        if let Err(error) = stdin.write_all(words.line().as_bytes()).await {
            tracing::debug!(%error, "an lvm shell was gone before it was asked");
            return Err(Silence::Unsent);
        }
        self.answer().await
    }

    async fn answer(&mut self) -> Result<Vec<u8>, Silence> {
        let (mut out, mut err) = ([0; 16 << 10], [0; 1024]);
        loop {
            if let Some(answer) = self.frames.next() {
                self.drain(&mut err).await;
                return Ok(answer);
            }
            tokio::select! {
                read = self.stdout.read(&mut out) => match read {
                    Ok(0) | Err(_) => return Err(Silence::Ended(self.last_words(&mut err).await)),
                    Ok(count) => self.frames.push(&out[..count]),
                },
                read = read(&mut self.stderr, &mut err) => self.tail.push(&err[..read]),
            }
            if self.frames.len() > MOST {
                return Err(Silence::Ended(format!("its answer is longer than {MOST} bytes")));
            }
        }
    }

    /// Takes in what stands in the pipe of standard error already, without waiting for more.
    async fn drain(&mut self, chunk: &mut [u8]) {
        loop {
            tokio::select! {
                biased;
                count = read(&mut self.stderr, chunk) => self.tail.push(&chunk[..count]),
                () = std::future::ready(()) => return,
            }
        }
    }

    async fn last_words(&mut self, chunk: &mut [u8]) -> String {
        let status = tokio::time::timeout(FAREWELL, self.child.wait()).await;
        self.drain(chunk).await;
        match status {
            Ok(Ok(status)) => format!("{status}: {}", self.tail.text()),
            _ => format!("it closed its output: {}", self.tail.text()),
        }
    }

    /// Memory that belongs to it alone (`RssAnon` in proc(5)), in bytes; `None` where that cannot be read.
    pub(super) async fn memory(&self) -> Option<u64> {
        let status = tokio::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).await.ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Lets a shell at rest end: without standard input it does.
    pub(super) async fn close(mut self) {
        if tokio::time::timeout(FAREWELL, self.end()).await.is_err() {
            tracing::warn!("an lvm shell at rest does not end: it is killed");
            let _ = self.child.kill().await;
        }
    }

    /// Lets a shell end that may still be changing something, however long that takes.
    pub(super) async fn leave(mut self) {
        self.end().await;
    }

    async fn end(&mut self) {
        self.stdin = None;
        // Its last words are read so that it does not die of a broken pipe.
        let mut rest = Vec::new();
        let _ = self.stdout.read_to_end(&mut rest).await;
        if let Err(error) = self.child.wait().await {
            tracing::warn!(%error, "an lvm shell cannot be waited for");
        }
    }

    /// Ends it at once. Only for a shell that was asked to look at something.
    pub(super) async fn kill(mut self) {
        let _ = self.child.kill().await;
    }
}

/// How much was read; never ready again once the stream has ended.
async fn read(stream: &mut Option<ChildStderr>, chunk: &mut [u8]) -> usize {
    if let Some(open) = stream {
        match open.read(chunk).await {
            Ok(count) if count > 0 => return count,
            Ok(_) | Err(_) => *stream = None,
        }
    }
    std::future::pending().await
}
