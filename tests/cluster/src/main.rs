//! The `cluster` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    cluster::cli::main()
}
