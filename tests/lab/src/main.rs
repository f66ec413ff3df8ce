//! The `lab` binary: the command line, and the first process of every guest.

mod cli;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match lab::init::called_for() {
        Some(folder) => {
            lab::init::main(Path::new(&folder));
            ExitCode::FAILURE
        }
        None => cli::main(),
    }
}
