use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::{Effect, ExecError, Invocation, Output, Program, Programs, Runner, tail};

/// The most that a program may write to standard output, in bytes. LVM's report on a group of
/// thousands of volumes stays far below.
const MOST: usize = 64 << 20;

/// Runs programs on this machine.
#[derive(Debug, Clone)]
pub struct Host {
    programs: Programs,
}

impl Host {
    /// Runs the programs that were found.
    pub const fn new(programs: Programs) -> Self {
        Self { programs }
    }

    /// A command with our environment, and without any stream.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts programs")]
    fn command(&self, program: Program, environment: &[(&'static str, std::ffi::OsString)]) -> Command {
        let mut command = Command::new(self.programs.path(program));
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command.envs(environment.iter().map(|(name, value)| (*name, value)));
        // A group of its own: a signal meant for the driver must not end what changes a disk.
        command.process_group(0).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a program that is talked to over its standard streams, all three of them pipes.
    /// It is not killed when its handle is dropped: it ends when its standard input does.
    ///
    /// # Errors
    /// It did not start.
    pub fn spawn_piped(&self, invocation: &Invocation) -> Result<Child, ExecError> {
        let mut command = self.command(invocation.program, &invocation.environment);
        command.args(&invocation.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|source| ExecError::Start { command: invocation.to_string(), source })
    }
}

#[async_trait::async_trait]
impl Runner for Host {
    async fn run(&self, invocation: Invocation) -> Result<Output, ExecError> {
        let shown = invocation.to_string();
        let failed = |source| ExecError::Start { command: shown.clone(), source };
        let mut command = self.command(invocation.program, &invocation.environment);
        command.args(&invocation.arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(matches!(invocation.effect, Effect::Query(_)));
        if let Some(input) = invocation.input {
            command.stdin(Stdio::from(input));
        }
        tracing::debug!(command = %shown, "running");
        let child = command.spawn().map_err(failed)?;
        drop(command);
        match invocation.effect {
            Effect::Query(limit) => within(limit, &shown, wait(child, &shown)).await,
            Effect::Change => wait(child, &shown).await,
        }
    }
}

async fn within(
    limit: Duration,
    command: &str,
    work: impl Future<Output = Result<Output, ExecError>>,
) -> Result<Output, ExecError> {
    let overdue = |_| ExecError::Overdue { command: command.to_owned(), limit };
    tokio::time::timeout(limit, work).await.map_err(overdue)?
}

/// Reads both streams at once, since a program that nobody reads from stands still, and awaits its end.
async fn wait(mut child: Child, command: &str) -> Result<Output, ExecError> {
    let failed = |source| ExecError::Start { command: command.to_owned(), source };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(bounded(stdout), tail::read(stderr)).map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    let stdout = stdout.ok_or_else(|| ExecError::Flood { command: command.to_owned(), limit: MOST })?;
    Ok(Output { code: status.code(), stdout, stderr })
}

/// All that a stream holds; `None` where that is more than [`MOST`].
async fn bounded(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Option<Vec<u8>>> {
    let Some(stream) = stream else { return Ok(Some(Vec::new())) };
    let mut bytes = Vec::new();
    let mut limited = stream.take(MOST as u64 + 1);
    limited.read_to_end(&mut bytes).await?;
    if bytes.len() <= MOST {
        return Ok(Some(bytes));
    }
    tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await?;
    Ok(None)
}
