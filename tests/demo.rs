//! The demo tells the truth: it says that it worked where it did, and fails where anything is not as it should be.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The demo, as `cargo build --examples` made it.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join("examples/demo");
    assert!(path.is_file(), "{} is missing: cargo build --examples", path.display());
    path
}

fn demo(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_demo_works_and_says_so_in_its_last_line() {
    let output = demo(&[]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.lines().last().unwrap().starts_with("It worked: 12 steps in "), "{shown}");
    assert!(!shown.contains("driver's log") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_step_that_goes_wrong_ends_the_demo_with_the_reason_and_the_log() {
    let output = demo(&["--disk", "256M"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for words in
        ["✗ CreateVolume answered RESOURCE_EXHAUSTED: volume group demo has no room", "The driver's log:"]
    {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    assert!(shown.lines().last().unwrap().starts_with("It did not work: step 3 failed"), "{shown}");
}

#[test]
fn a_driver_that_is_killed_ends_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("driver");
    let quarry = env!("CARGO_BIN_EXE_quarry");
    // It lives until it has made a volume.
    let lines = format!(
        "#!/bin/sh\n(until lvs --noheadings demo | grep -q .; do sleep 0.1; done; kill -KILL $$) &\nexec {quarry} \"$@\"\n"
    );
    std::fs::write(&script, lines).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = demo(&["--driver", script.to_str().unwrap()]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("The driver ended by itself, with signal: 9"), "{shown}");
}
