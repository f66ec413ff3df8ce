//! Test functions that have to fail, and do.

use std::io::Write;
use std::process::Command;

use lab::Machine;

use crate::PATIENCE;

/// Runs one of the tests below, which have to fail, and returns what it printed.
#[track_caller]
fn must_fail(test: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--exact", test, "--ignored", "--test-threads=1"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && text.contains("1 failed"), "{text}");
    text
}

#[test]
fn a_closure_that_panics_fails_the_test_and_shows_the_guests_output() {
    let text = must_fail("failures::fails_because_its_closure_panics");
    assert!(text.contains("said before the end") && text.contains("the reason of it all"), "{text}");
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_its_closure_panics() {
    Machine::new().boot(|| {
        std::io::stdout().write_all(b"said before the end\n").unwrap();
        panic!("the reason of it all");
    });
}

#[test]
fn a_guest_that_runs_no_closure_fails_the_test() {
    assert!(
        must_fail("failures::fails_because_its_closure_never_runs")
            .contains("the guest did not run the test's closure")
    );
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_its_closure_never_runs() {
    if !lab::is_guest() {
        Machine::new().boot(|| ());
    }
}

#[test]
fn a_power_cut_that_does_not_come_fails_the_test() {
    assert!(
        must_fail("failures::fails_because_the_power_stays_on").contains("the power should have been cut")
    );
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_the_power_stays_on() {
    Machine::new().boot_until_power_cut(|| ());
}

#[test]
fn a_panic_on_the_host_ends_the_guest_and_fails_the_test() {
    assert!(must_fail("failures::fails_because_the_host_panics").contains("the host has had enough"));
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_the_host_panics() {
    Machine::new().boot_with(
        |host| {
            host.wait_for("up", PATIENCE).unwrap();
            panic!("the host has had enough");
        },
        || {
            lab::tell("up").unwrap();
            std::thread::sleep(10 * PATIENCE);
        },
    );
}

#[test]
fn a_guest_that_fails_before_it_tells_what_the_host_waits_for_fails_the_test_at_once() {
    let text = must_fail("failures::fails_because_its_guest_never_tells");
    assert!(text.contains("the guest ended and did not tell"), "{text}");
    assert!(text.contains("the reason of it all"), "{text}");
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_its_guest_never_tells() {
    let an_hour = std::time::Duration::from_secs(3600);
    Machine::new().boot_with(|host| host.wait_for("up", an_hour).unwrap(), || panic!("the reason of it all"));
}
