//! Nothing outlives its runner: no process and, at the latest after the next run, no file.

use std::process::Command;

use nix::sys::signal::{Signal, kill};

use crate::runner::Runner;
use crate::wait_until;

#[track_caller]
fn assert_all_goes(runner: &Runner) {
    wait_until("all processes are gone", || runner.pids_of("").is_empty());
    wait_until("the run's folder is gone", || runner.folders().is_empty());
}

/// A keyboard's Ctrl-C, a friendly request, and a kill that nothing can be done about.
#[test]
fn a_runner_that_is_ended_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let runner = Runner::start(&[]);
        assert_eq!(runner.folders().len(), 1);
        runner.signal(signal);
        assert_all_goes(&runner);
    }
}

#[test]
fn a_supervisor_that_is_killed_takes_its_guest_along() {
    let runner = Runner::start(&[]);
    kill(runner.pids_of("supervise")[0], Signal::SIGKILL).unwrap();
    assert_all_goes(&runner);
    let (status, errors) = runner.end();
    assert_eq!(status.code(), Some(125), "the lab's own failure: {errors}");
}

#[test]
fn when_all_are_killed_at_once_the_next_run_cleans_up() {
    let mut runner = Runner::start(&[]);
    // Stopped first, so that it cannot clean up after its supervisor.
    runner.signal(Signal::SIGSTOP);
    kill(runner.pids_of("supervise")[0], Signal::SIGKILL).unwrap();
    runner.signal(Signal::SIGKILL);
    // Until it is gone it holds its folder.
    runner.wait();
    assert_eq!(runner.folders().len(), 1);

    let mut next = Command::new(env!("CARGO_BIN_EXE_lab"));
    let status = next.args(["run", "--", "true"]).env("TMPDIR", runner.temporary()).status().unwrap();
    assert!(status.success());
    assert_all_goes(&runner);
}

/// Another run's sweep must not take a folder that is in use.
#[test]
fn a_run_leaves_the_folders_of_others_alone() {
    let runner = Runner::start(&[]);
    let mut other = Command::new(env!("CARGO_BIN_EXE_lab"));
    let status = other.args(["run", "--", "true"]).env("TMPDIR", runner.temporary()).status().unwrap();
    assert!(status.success());
    assert_eq!(runner.folders().len(), 1);
    runner.signal(Signal::SIGTERM);
    assert_all_goes(&runner);
}
