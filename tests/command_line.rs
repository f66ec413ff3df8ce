//! The program as a person meets it: what it prints, and with which code it ends.

use std::path::Path;
use std::process::{Command, Output};

fn quarry(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quarry")).args(arguments).env_clear().output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_typed_wrongly_ends_with_64_and_a_plain_message() {
    for (arguments, words) in [
        (&[][..], "Usage: quarry"),
        (&["serve"], "unrecognized subcommand 'serve'"),
        (&["standalone", "--bogus"], "unexpected argument '--bogus'"),
        (&["standalone"], "no volume group is named: give --volume-group NAME"),
        (&["standalone", "--volume-group", "a/b"], "volume group \"a/b\" must be a name"),
        (&["standalone", "--volume-group", "vg0", "--endpoint", "tcp://:1"], "must be unix:///PATH"),
        (&["standalone", "--config", "/nowhere.toml"], "/nowhere.toml cannot be read: No such file"),
    ] {
        let output = quarry(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
        assert!(!message.contains('\u{1b}'), "colours in a file: {message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_mistake_in_the_file_is_shown_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("quarry.toml");
    std::fs::write(&path, "node-name = 'n1'\nvolume-group = 'vg0'\n").unwrap();
    let output = quarry(&["standalone", "--config", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    let message = text(&output.stderr);
    for words in ["quarry.toml is wrong", "line 2", "unknown field `volume-group`"] {
        assert!(message.contains(words), "{words} is not in: {message}");
    }
}

#[test]
fn what_is_asked_for_is_printed_and_is_no_failure() {
    let schema = quarry(&["config-schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["properties"]["volume-groups"].is_object());
    for (argument, words) in [("--version", env!("CARGO_PKG_VERSION")), ("--help", "standalone")] {
        let output = quarry(&[argument]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(words));
    }
}

#[test]
fn a_socket_that_is_served_on_is_a_failure_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("csi.sock");
    let _live = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let output = quarry(&[
        "standalone",
        "--volume-group=none",
        &format!("--endpoint={}", socket.display()),
        &format!("--run-directory={}", at("run")),
        &format!("--backup-directory={}", at("backup")),
        &format!("--lvm-locking-directory={}", at("lock")),
    ]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("another process serves on {}", socket.display())), "{message}");
    assert!(Path::exists(&socket), "it is not ours to remove");
}

#[test]
fn a_node_that_knows_no_controller_or_no_kubelet_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let node = |arguments: &[&str]| {
        let endpoint = format!("--endpoint={}", at("csi.sock"));
        let given = ["node", "--volume-group=none", "--health-address=off", &endpoint];
        let output = quarry(&[given.as_slice(), arguments].concat());
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let (code, message) = node(&[]);
    assert_eq!(code, Some(64), "{message}");
    assert!(message.contains("no controller is named: give --controller NAME:PORT"), "{message}");
    let missing = at("kubelet");
    let (code, message) = node(&["--controller=127.0.0.1:1", &format!("--kubelet-directory={missing}")]);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains(&format!("cannot use the kubelet's directory {missing}")), "{message}");
}
