//! The command line.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};
use tokio::runtime::Runtime;

use crate::agent::{self, Answer, Request};
use crate::e2e::{self, Choice};
use crate::keeper::{self, Purpose, State};
use crate::{DiskOptions, Error, NodeOptions, Options, Paths, guest, namespaces, network, say};

/// A real Kubernetes cluster on this machine, for tests: guests of the lab are its nodes.
#[derive(Debug, Parser)]
#[command(name = "cluster", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build all that a cluster is made of: programs, images, and the disk that holds them.
    Build,
    /// Bring a cluster up that stays.
    Up(Shape),
    /// Take the cluster down, and remove what one has left that was killed.
    Down,
    /// Run scenarios in a cluster of their own; all if none is named.
    Run {
        #[command(flatten)]
        shape: Shape,
        /// The scenarios.
        scenarios: Vec<String>,
    },
    /// Run Kubernetes' own tests of storage drivers in a cluster of their own, going on where the last run stopped.
    E2e {
        #[command(flatten)]
        shape: Shape,
        #[command(flatten)]
        choice: Choice,
    },
    /// Run a program in the cluster's network.
    Exec {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Run kubectl in the cluster's network.
    Kubectl {
        /// kubectl's arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a program on a node, beside its kubelet.
    Node {
        /// The node's number, counted from 1.
        number: u8,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// The process that a cluster lives and dies with.
    #[command(hide = true)]
    Keep { task: String },
    /// What a guest runs to be a node.
    #[command(hide = true)]
    ServeNode { order: PathBuf },
    /// What a guest runs to put images on a disk.
    #[command(hide = true)]
    FillDisk { bin: PathBuf, archive: PathBuf, log: PathBuf },
}

#[derive(Debug, Args)]
struct Shape {
    /// How many nodes.
    #[arg(long, default_value_t = 2)]
    nodes: usize,
    /// Size of each node's memory.
    #[arg(long, default_value = "2G")]
    memory: String,
    /// A disk of each node, and the volume group on it. Default: 12G:quarry and an empty 4G.
    #[arg(long = "disk", value_name = "SIZE[:GROUP]")]
    disks: Vec<DiskOptions>,
    /// An OCI archive that all nodes import.
    #[arg(long = "image", value_name = "ARCHIVE")]
    images: Vec<PathBuf>,
    /// The driver's image, an OCI archive: install the driver from it as its manual says.
    #[arg(long, value_name = "ARCHIVE")]
    driver: Option<PathBuf>,
}

impl Shape {
    fn options(self) -> Options {
        let default = NodeOptions::default();
        let disks = if self.disks.is_empty() { default.disks } else { self.disks };
        let node = NodeOptions { memory: self.memory, disks };
        Options { images: self.images, driver: self.driver, ..Options::alike(self.nodes, &node) }
    }
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        // Before there is a runtime, whose threads could not be taken along into other namespaces.
        Action::Keep { task } => return keeper::inside(&task),
        Action::Exec { command } => exec(&command),
        Action::Kubectl { arguments } => kubectl(arguments),
        Action::Node { number, command } => on_node(number, command),
        action => with_runtime(action),
    };
    result.unwrap_or_else(|error| {
        say(&error.chain());
        ExitCode::FAILURE
    })
}

fn with_runtime(action: Action) -> Result<ExitCode, Error> {
    runtime()?.block_on(async {
        let paths = Paths::find()?;
        match action {
            Action::Build => keeper::build(&paths).await.map(drop)?,
            Action::Up(shape) => keeper::up(&paths, shape.options()).await?,
            Action::Down => keeper::down(&paths)?,
            Action::Run { shape, scenarios } => {
                return keeper::run(&paths, shape.options(), Purpose::Run(scenarios)).await;
            }
            Action::E2e { shape, choice } => return e2e::run(&paths, shape.options(), &choice).await,
            Action::ServeNode { order } => guest::node(&order).await?,
            Action::FillDisk { bin, archive, log } => guest::fill_disk(&bin, &archive, &log).await?,
            _ => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn runtime() -> Result<Runtime, Error> {
    Runtime::new().map_err(Error::io("start the runtime"))
}

/// Takes this process into the running cluster's network.
fn join() -> Result<Paths, Error> {
    let paths = Paths::find()?;
    let state = State::load(&paths)
        .ok_or_else(|| Error::other("no cluster is up: `make cluster-up` brings one up"))?;
    namespaces::join_network(state.process())?;
    Ok(paths)
}

fn exec(command: &[String]) -> Result<ExitCode, Error> {
    let paths = join()?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::other("no program is named"))?;
    // Returns only when it failed.
    let source = Command::new(program).args(arguments).env("KUBECONFIG", paths.kubeconfig()).exec();
    Err(Error::Start { program: program.clone(), source })
}

fn kubectl(arguments: Vec<String>) -> Result<ExitCode, Error> {
    let kubectl = Paths::find()?.bin().join("kubectl").display().to_string();
    exec(&[vec![kubectl], arguments].concat())
}

fn on_node(number: u8, arguments: Vec<String>) -> Result<ExitCode, Error> {
    join()?;
    let limit = std::time::Duration::from_secs(600);
    let request = Request::Run { arguments, input: String::new(), limit };
    let answer = runtime()?.block_on(agent::ask(network::node_address(number), &request, limit))?;
    match answer {
        Answer::Ran(output) => {
            let mut streams = (std::io::stdout(), std::io::stderr());
            let write = |to: &mut dyn std::io::Write, text: &str| to.write_all(text.as_bytes());
            write(&mut streams.0, &output.stdout)
                .and_then(|()| write(&mut streams.1, &output.stderr))
                .map_err(Error::io("print what it wrote"))?;
            Ok(u8::try_from(output.status).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        other => Err(Error::other(format!("{other:?}"))),
    }
}
