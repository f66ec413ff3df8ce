//! The `quarry` program: parse the command line, run, print the error chain.

use std::process::ExitCode;

use quarry::app;
use quarry::cli::{self, Cli};

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => return answer.print(),
    };
    match app::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cli::print_error(&error);
            error.exit_code()
        }
    }
}
