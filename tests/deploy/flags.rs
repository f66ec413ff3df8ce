//! The flags in the chart are flags that the programs have.

use std::collections::BTreeSet;
use std::process::Command;

use super::{container, manifests, object, texts, tools};

/// The long flags in a help text: words that begin with one or two hyphens.
fn in_help(help: &str) -> BTreeSet<String> {
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let flags = words.filter_map(|word| word.strip_prefix("--").or_else(|| word.strip_prefix('-')));
    flags.filter(|flag| flag.len() > 1).map(str::to_owned).collect()
}

/// What a program says of itself. Go's flag package ends with 0 or 2 then, and writes to either stream.
fn help(command: &mut Command) -> BTreeSet<String> {
    let output = command.arg("--help").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    in_help(&String::from_utf8_lossy(&text))
}

fn assert_known(flags: &[&str], known: &BTreeSet<String>, program: &str) {
    for flag in flags.iter().filter_map(|flag| flag.strip_prefix("--")) {
        let name = flag.split('=').next().unwrap();
        assert!(known.contains(name), "{program} has no flag --{name}");
    }
}

#[test]
fn the_driver_knows_its_flags() {
    let all = manifests();
    for (kind, name) in [("Deployment", "quarry-controller"), ("DaemonSet", "quarry-node")] {
        let arguments = texts(&container(object(&all, kind, name), "quarry")["args"]);
        let (role, flags) = arguments.split_first().unwrap();
        let known = help(Command::new(env!("CARGO_BIN_EXE_quarry")).arg(role));
        assert_known(flags, &known, &format!("quarry {role}"));
    }
}

#[test]
fn the_sidecars_know_their_flags() {
    let all = manifests();
    for (kind, workload, name) in [
        ("Deployment", "quarry-controller", "csi-provisioner"),
        ("Deployment", "quarry-controller", "csi-resizer"),
        ("DaemonSet", "quarry-node", "csi-node-driver-registrar"),
    ] {
        let flags = texts(&container(object(&all, kind, workload), name)["args"]);
        assert_known(&flags, &help(&mut Command::new(tools::cluster(name))), name);
    }
}
