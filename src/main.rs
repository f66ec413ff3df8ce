//! The `quarry` program: parse the command line, run, print the error chain.

use std::process::ExitCode;

use quarry::cli::{self, Cli};

fn main() -> ExitCode {
    match Cli::read(std::env::args_os()) {
        Err(answer) => answer.print(),
        Ok(cli) => cli.run().map_or_else(|error| cli::print_error(&error), |()| ExitCode::SUCCESS),
    }
}
