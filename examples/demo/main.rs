//! The demo: a volume's life, as a person would follow it, on real LVM.
//!
//! On a host it boots a guest of the lab in which it runs itself again; there it makes a volume group, starts
//! `quarry standalone` and calls it as Kubernetes would. It fails at the first thing that is not as it should
//! be, and then shows the driver's log.

mod calls;
mod driver;
mod error;
mod files;
mod host;
mod program;
mod raw;
mod screen;
mod table;
mod walk;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use quarry::types::chain;

use crate::error::Error;
use crate::screen::Screen;

/// Walks through a volume's life on real LVM, in a guest of the lab.
#[derive(Debug, Parser)]
struct Options {
    /// The driver to show; by default the one that was built beside this program.
    #[arg(long, value_name = "FILE")]
    driver: Option<PathBuf>,
    /// The size of the guest's disk.
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    disk: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    // The lab's jobs have disks, and nothing else has.
    let result = match lab::disks().first() {
        Some(disk) => walk::run(&options, disk),
        None => host::run(&options),
    };
    result.unwrap_or_else(|error| {
        Screen::new().did_not_work(&chain(&error));
        ExitCode::FAILURE
    })
}
