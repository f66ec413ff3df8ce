//! The wiring: what is made out of the configuration, and in which order it starts and ends.

mod controller;
mod driver;
mod files;
mod inspect;
mod lost;
mod node;
mod signals;
mod standalone;

pub use controller::{Doors, controller};
pub use driver::Machine;
pub use node::node;
pub use standalone::standalone;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::subscriber::SetGlobalDefaultError;

use crate::cli::{self, Command, Role};
use crate::cluster::{ClusterError, ConnectError};
use crate::config::{
    self, Config, ConfigError, ControllerConfig, ControllerFlags, Flags, NodeConfig, NodeFlags,
};
use crate::exec::MissingPrograms;
use crate::inspect::{InspectError, NotLost};
use crate::link::TlsError;
use crate::lvm::EngineError;
use crate::metrics::Metrics;
use crate::mount::MountError;
use crate::server::{Drained, Health, HealthError, ServeError, Socket, SocketError};
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
    /// Probes cannot be answered there.
    #[error("cannot answer probes")]
    Health(#[from] HealthError),
    /// What is mounted for pods would not be seen by them.
    #[error(
        "mounts below {} are not seen by the host, so pods would see empty volumes: mount the directory with mountPropagation: Bidirectional into a privileged container", .0.display()
    )]
    NotShared(PathBuf),
    /// The kubelet's directory cannot be looked at.
    #[error("cannot use the kubelet's directory {}: where it is elsewhere, --kubelet-directory says so", .directory.display())]
    Kubelet {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        #[source]
        source: MountError,
    },
    /// Nodes cannot connect there.
    #[error("cannot listen for nodes at {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The cluster is nowhere to be found.
    #[error("cannot use the API server")]
    Cluster(#[from] ConnectError),
    /// The API server did not tell or do something.
    #[error(transparent)]
    Api(#[from] ClusterError),
    /// A volume group cannot be declared lost.
    #[error(transparent)]
    NotLost(#[from] NotLost),
    /// Links have no TLS.
    #[error("cannot accept links")]
    Tls(#[from] TlsError),
    /// Serving failed.
    #[error("serving ended")]
    Serve(#[from] ServeError),
    /// The machine cannot be looked at.
    #[error("cannot look at this machine")]
    Inspect(#[from] InspectError),
    /// Some of what was asked for is not known.
    #[error("not all volume groups can be read, so their volumes are not shown: {0}")]
    Unread(String),
    /// Something is unhealthy, and was told.
    #[error("unhealthy things found: {0}")]
    Unhealthy(usize),
    /// What was asked for cannot be printed.
    #[error("cannot print")]
    Output(#[source] io::Error),
}

impl AppError {
    /// Tells a mistake of the user's from a failure.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::from(cli::USAGE),
            Self::Unhealthy(_) => ExitCode::from(cli::UNHEALTHY),
            Self::Log(_)
            | Self::Start(_)
            | Self::Programs(_)
            | Self::Lvm(_)
            | Self::Socket(_)
            | Self::Health(_)
            | Self::NotShared(_)
            | Self::Kubelet { .. }
            | Self::Listen { .. }
            | Self::Cluster(_)
            | Self::Api(_)
            | Self::NotLost(_)
            | Self::Tls(_)
            | Self::Serve(_)
            | Self::Inspect(_)
            | Self::Unread(_)
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
        Command::Node(flags) => run_node(*flags),
        Command::Controller(flags) => run_controller(*flags),
        Command::Volumes(flags) => inspect::show_volumes(*flags),
        Command::Vgs(flags) => inspect::show_groups(*flags),
        Command::Check(flags) => inspect::show_check(*flags),
        Command::Lost(flags) => lost::show_or_change(*flags),
        Command::ConfigSchema { role } => print_schema(role).map_err(AppError::Output),
    }
}

fn print_schema(role: Role) -> io::Result<()> {
    let schema = match role {
        Role::Standalone => config::schema(),
        Role::Controller => config::schema_of::<config::ControllerSettings>(),
    };
    let mut stdout = io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, &schema)?;
    writeln!(stdout)
}

fn run_standalone(flags: Flags) -> Result<(), AppError> {
    let config = Config::load(flags)?;
    run_role(&config.clone(), "standalone", async |start: Start| {
        let machine = Machine::local(&config, &start.background, &start.metrics).await?;
        standalone(config, start, machine).await
    })
}

fn run_node(flags: NodeFlags) -> Result<(), AppError> {
    let config = NodeConfig::load(flags)?;
    run_role(&config.driver.clone(), "node", async |start: Start| {
        node::check_mounts(&config.kubelet_directory).await?;
        let machine = Machine::local(&config.driver, &start.background, &start.metrics).await?;
        node(config, start, machine).await
    })
}

/// What a role finds when it starts.
pub struct Start {
    /// Where it serves.
    pub socket: Socket,
    /// What it is to be shown by.
    pub metrics: Metrics,
    /// Where work runs that outlives calls.
    pub background: TaskTracker,
    /// Cancelled when it is asked to stop.
    pub shutdown: CancellationToken,
}

/// Runs a role until a signal ends it. Work that is left undone at the end of the grace period is no error,
/// but logged.
fn run_role(
    config: &Config,
    name: &'static str,
    role: impl AsyncFnOnce(Start) -> Result<Drained, AppError>,
) -> Result<(), AppError> {
    telemetry::start(&config.log_filter, config.log_format)?;
    let runtime = runtime(config.runtime_threads).map_err(AppError::Start)?;
    let result = runtime.block_on(async {
        let shutdown = signals::shutdown().map_err(AppError::Start)?;
        // First of all: where another driver serves, this one touches nothing.
        let socket = Socket::bind(&config.endpoint)?;
        // Before LVM is: the process is alive, whatever LVM does. Until the very end.
        let metrics = Metrics::new(name);
        let _probes = answer_probes(config, metrics.clone()).await?;
        role(Start { socket, metrics, background: TaskTracker::new(), shutdown }).await
    });
    runtime.shutdown_timeout(LAST_CALLS);
    result.map(|_| ())
}

/// Likewise, for the controller.
fn run_controller(flags: ControllerFlags) -> Result<(), AppError> {
    let config = ControllerConfig::load(flags)?;
    telemetry::start(&config.log_filter, config.log_format)?;
    let runtime = runtime(config.runtime_threads).map_err(AppError::Start)?;
    let result = runtime.block_on(async {
        let shutdown = signals::shutdown().map_err(AppError::Start)?;
        controller::run(config, shutdown).await
    });
    runtime.shutdown_timeout(LAST_CALLS);
    result.map(|_| ())
}

/// Answers probes, and those who want metrics, where it is wanted, for as long as the guard lives.
async fn answer_probes(config: &Config, metrics: Metrics) -> Result<Option<DropGuard>, AppError> {
    let Some(address) = config.health_address else { return Ok(None) };
    let (health, stop) = (Health::bind(address).await?, CancellationToken::new());
    let tracker = TaskTracker::new();
    tracker.spawn(health.serve(ready, move || metrics.text(), tracker.clone(), stop.clone()));
    Ok(Some(stop.drop_guard()))
}

/// Whether the driver is ready: as soon as it is there. A group that is not is that group's trouble.
const fn ready() -> bool {
    true
}

/// Says that calls are taken.
fn announce(config: &Config) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        node = %config.node_name,
        endpoint = %config.endpoint,
        "serving"
    );
}

fn runtime(threads: NonZeroUsize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads.get()).enable_all().build()
}
