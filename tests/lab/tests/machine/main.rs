//! The lab's own tests: what a guest does with a job, and that the test functions in a guest are what they seem.
//!
//! That this file is an integration test makes cargo build the `lab` binary, which all guests need.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed step is a failed test")]
#![expect(clippy::disallowed_methods, reason = "these tests are about starting programs")]

mod boots;
mod failures;
mod jobs;
mod leftovers;
mod on_host;
mod runner;

use std::process::Command;
use std::time::{Duration, Instant};

use lab::{Error, Finished, Job, Machine, Streams};

/// How long anything in a guest may take to show.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(machine: &Machine, command: &str) -> Result<Finished, Error> {
    machine.start(Job::new(["sh", "-c", command])?, Streams::Capture)?.wait()
}

/// Runs a program that has to succeed, and returns what it wrote.
#[track_caller]
fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
