//! Runs csi-sanity, the conformance suite of CSI, against `quarry standalone` on real LVM.
//!
//! On the host it builds the suite (a Go program) and boots a lab guest in which it runs itself again; there
//! it makes a volume group, starts the driver and runs the suite for each kind of volume.
//! The last lines of standard output are the results; the exit status is 0 only if every spec passed or
//! was skipped as `expected` says.

mod error;
mod expected;
mod guest;
mod host;
mod program;
mod report;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;

/// Runs csi-sanity against quarry in a lab guest.
#[derive(Parser)]
struct Options {
    /// The driver to test; by default the one beside this program.
    #[arg(long)]
    driver: Option<PathBuf>,
    /// Run the suite here and now: the disk is wiped. The guest is started with this.
    #[arg(long)]
    in_guest: bool,
    /// The disk for the volume group.
    #[arg(long, default_value = "/dev/ubda")]
    device: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("sanity: {}", lab::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Error> {
    let paths = host::Paths::find(options.driver.as_deref())?;
    if options.in_guest { guest::run(&paths, &options.device).await } else { host::run(&paths).await }
}

/// One line for the person who waits: on standard error, so that standard output holds the results alone.
fn say(line: &str) {
    // Nobody to tell is no reason to stop.
    drop(writeln!(io::stderr(), "{line}"));
}
