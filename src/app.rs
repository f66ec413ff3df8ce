//! The wiring: what is made out of the configuration, and in which order it starts and ends.

mod signals;
mod standalone;

pub use standalone::{Machine, standalone};

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::TaskTracker;
use tracing::subscriber::SetGlobalDefaultError;

use crate::cli::{self, Command};
use crate::config::{self, Config, ConfigError, Flags};
use crate::exec::MissingPrograms;
use crate::lvm::EngineError;
use crate::server::{ServeError, Socket, SocketError};
use crate::telemetry;

/// How long blocking calls that still run may hold up the end of the process once everything that
/// matters is done.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// Why the driver did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The configuration means nothing.
    #[error("bad configuration")]
    Config(#[from] ConfigError),
    /// There is a log already.
    #[error("cannot start the log")]
    Log(#[from] SetGlobalDefaultError),
    /// No threads or no signals.
    #[error("cannot start")]
    Start(#[source] io::Error),
    /// A program that the driver needs is missing.
    #[error(transparent)]
    Programs(#[from] MissingPrograms),
    /// LVM does not work here.
    #[error("cannot use LVM")]
    Lvm(#[source] EngineError),
    /// Nothing can be served there.
    #[error("cannot serve")]
    Socket(#[from] SocketError),
    /// Serving failed.
    #[error("serving ended")]
    Serve(#[from] ServeError),
    /// What was asked for cannot be printed.
    #[error("cannot print")]
    Output(#[source] io::Error),
}

impl AppError {
    /// Tells a mistake of the user's from a failure.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::from(cli::USAGE),
            Self::Log(_)
            | Self::Start(_)
            | Self::Programs(_)
            | Self::Lvm(_)
            | Self::Socket(_)
            | Self::Serve(_)
            | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}

/// Does what the command line asks for, and returns when it is done. Blocks.
///
/// # Errors
/// See [`AppError`].
pub fn run(command: Command) -> Result<(), AppError> {
    match command {
        Command::Standalone(flags) => run_standalone(*flags),
        Command::ConfigSchema => print_schema().map_err(AppError::Output),
    }
}

fn print_schema() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, &config::schema())?;
    writeln!(stdout)
}

/// Reads the configuration, and serves until a signal ends it. Work that is left undone at the end of the
/// grace period is no error, but logged.
fn run_standalone(flags: Flags) -> Result<(), AppError> {
    let config = Config::load(flags)?;
    telemetry::start(&config.log_filter, config.log_format)?;
    let runtime = runtime(&config).map_err(AppError::Start)?;
    let result = runtime.block_on(async {
        let shutdown = signals::shutdown().map_err(AppError::Start)?;
        // First of all: where another driver serves, this one touches nothing.
        let socket = Socket::bind(&config.endpoint)?;
        let background = TaskTracker::new();
        let machine = Machine::local(&config, &background).await?;
        standalone(config, socket, machine, background, shutdown).await
    });
    runtime.shutdown_timeout(LAST_CALLS);
    result.map(|_| ())
}

fn runtime(config: &Config) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(config.runtime_threads.get()).enable_all().build()
}
