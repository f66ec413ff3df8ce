//! The command line of the lab.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use lab::supervisor::{self, Charge};
use lab::{End, Error, Job, Machine, Streams};

/// The lab's own failures: not to be taken for one of the job.
const FAILED: u8 = 125;

/// A machine with a working device mapper, for tests on real LVM.
#[derive(Debug, Parser)]
#[command(name = "lab", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run a command in a guest and exit with its status; 125 when the guest failed.
    ///
    /// The guest sees this machine's files and the caller's environment and working directory. What it writes is gone
    /// when it ends, except on disks given with --keep and in folders given with --share.
    Run(Run),
    /// Run one guest for another `lab` process.
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Args)]
struct Run {
    /// Add an empty disk of this size: /dev/ubda, /dev/ubdb, ...
    #[arg(long, value_name = "SIZE")]
    disk: Vec<String>,
    /// Add a disk whose content is this file, after the empty ones. Make one with `truncate -s 1G FILE`.
    #[arg(long, value_name = "FILE")]
    keep: Vec<PathBuf>,
    /// Let the guest write into this folder.
    #[arg(long, value_name = "FOLDER")]
    share: Vec<PathBuf>,
    /// Run udev in the guest.
    #[arg(long)]
    udev: bool,
    /// Make RAID 6 work, which makes the guest's start slower.
    #[arg(long)]
    raid6: bool,
    /// Size of the guest's memory.
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: String,
    /// How long the guest may run.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = lab::parse_duration)]
    limit: Duration,
    /// Use no guest: run on this machine, with loop devices as disks. The command sees this machine's volume groups.
    /// LAB_ON_HOST=1 does the same, for tests too.
    #[arg(long)]
    on_host: bool,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Supervise {
    #[arg(long)]
    job: PathBuf,
    #[arg(long)]
    owner: PathBuf,
    #[arg(long)]
    limit_ms: u64,
    #[arg(last = true, required = true)]
    kernel: Vec<OsString>,
}

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Action::Run(options) => run(options),
        Action::Supervise(options) => supervise(options),
    };
    result.unwrap_or_else(|error| {
        drop(writeln!(io::stderr().lock(), "lab: {}", error.chain()));
        ExitCode::from(FAILED)
    })
}

fn run(options: Run) -> Result<ExitCode, Error> {
    let mut machine = Machine::new().memory(&options.memory).limit(options.limit);
    if options.udev {
        machine = machine.udev();
    }
    if options.raid6 {
        machine = machine.raid6();
    }
    machine = options.disk.iter().fold(machine, |machine, size| machine.disk(size));
    machine = options.keep.into_iter().fold(machine, Machine::disk_file);
    machine = options.share.into_iter().fold(machine, Machine::share);
    let job = Job::new(options.command)?;
    let finished = if options.on_host || lab::is_on_host_wanted() {
        machine.run_on_host(job, Streams::Inherit)
    } else {
        machine.start(job, Streams::Inherit)?.wait()
    };
    match finished?.end {
        End::Exited(status) => Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)),
        End::PowerCut => Err(Error::Invalid("the guest cut its own power".to_owned())),
    }
}

fn supervise(options: Supervise) -> Result<ExitCode, Error> {
    supervisor::run(&Charge {
        job: options.job,
        owner: options.owner,
        limit: Duration::from_millis(options.limit_ms),
        kernel: options.kernel,
    })?;
    Ok(ExitCode::SUCCESS)
}
