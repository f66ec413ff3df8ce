//! Builds what Quarry is installed from. Started by `make image` and its neighbours.

mod error;
mod helm;
mod image;
mod manifests;
mod program;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The repository at large.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Builds what Quarry is installed from.
#[derive(Debug, Parser)]
#[command(name = "deploy")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds the container image, as an OCI archive in target/image.
    Image(image::Options),
    /// Renders the chart into deploy/manifests.
    Manifests(manifests::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Image(options) => image::build(&options),
        Command::Manifests(options) => manifests::render(&options),
    };
    match done {
        Ok(line) => {
            print(&mut io::stdout(), &line);
            ExitCode::SUCCESS
        }
        Err(error) => {
            print(&mut io::stderr(), &format!("deploy: {}", error::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// A step that takes a while begins.
fn say(step: &str) {
    print(&mut io::stderr(), &format!("deploy: {step}"));
}

fn print(to: &mut dyn io::Write, line: &str) {
    // Nobody to tell is no reason to stop.
    drop(writeln!(to, "{line}"));
}
