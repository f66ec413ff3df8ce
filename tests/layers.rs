//! Holds the rules of the house that no compiler holds: which way imports point, who may name tonic,
//! kube and the generated code, and how long a file may be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each module of the crate, and the modules that it may use. What is not listed may use nothing.
const MAY_USE: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("proto", &[]),
    ("exec", &["types"]),
    ("lvm", &["types", "exec"]),
    ("fs", &["types", "exec"]),
    ("mount", &["types", "exec"]),
    ("device", &["types", "exec"]),
    ("cluster", &["types"]),
    ("volume", &["types", "exec", "lvm", "fs", "mount", "device"]),
    ("link", &["types", "proto"]),
    ("csi", &["types", "proto", "volume"]),
    ("router", &["types", "proto", "cluster", "volume", "link", "csi"]),
    ("server", &["types"]),
    ("telemetry", &["types"]),
    ("metrics", &["types", "lvm", "volume", "router"]),
    ("inspect", &["types", "exec", "lvm", "fs", "device", "cluster", "volume", "csi"]),
    ("config", &["types", "cluster", "link", "server", "telemetry", "lvm"]),
    ("cli", &["types", "config"]),
    (
        "app",
        &[
            "types",
            "proto",
            "exec",
            "lvm",
            "fs",
            "mount",
            "device",
            "volume",
            "cluster",
            "link",
            "csi",
            "router",
            "server",
            "config",
            "cli",
            "telemetry",
            "metrics",
            "inspect",
        ],
    ),
];

/// Crates that only some modules may name.
const RESERVED: &[(&str, &[&str])] = &[
    ("tonic", &["proto", "csi", "link", "router", "server", "app"]),
    ("prost", &["proto", "csi", "link", "router"]),
    ("hyper", &["link", "server"]),
    ("tokio_rustls", &["link"]),
    ("kube", &["cluster"]),
    ("k8s_openapi", &["cluster"]),
    ("rcgen", &["cluster"]),
    ("clap", &["cli", "config"]),
    ("prometheus_client", &["metrics", "server"]),
    ("serde_saphyr", &["inspect"]),
];

/// A file holds one idea.
const LONGEST_FILE: usize = 600;

struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    files_below(&root, &mut paths);
    let read = |path: PathBuf| {
        let first = path.strip_prefix(&root).unwrap().components().next().unwrap();
        let module = first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        Source { module, text: std::fs::read_to_string(&path).unwrap(), path }
    };
    let counts = |source: &Source| {
        let inside = source.path.strip_prefix(&root).unwrap();
        let is_test =
            inside.ends_with("tests.rs") || inside.components().any(|part| part.as_os_str() == "tests");
        !["lib", "main"].contains(&source.module.as_str()) && !is_test
    };
    paths.into_iter().map(read).filter(counts).collect()
}

/// Lines of code: comments may name whatever they explain, tests whatever they test with.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().map(str::trim).filter(|line| !line.starts_with("//"))
}

/// The words that stand before `::` after `prefix`, as in `crate::lvm::Group`, groups in braces included.
fn used(text: &str, prefix: &str) -> BTreeSet<String> {
    let code: String = code(text).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let word = |text: &str| {
            text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        match rest.strip_prefix('{') {
            Some(group) => {
                let (mut depth, mut start) = (0, true);
                for (i, c) in group.char_indices() {
                    if start && !c.is_whitespace() && depth == 0 {
                        names.insert(word(&group[i..]));
                    }
                    start = c == ',' || (start && c.is_whitespace());
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        _ => {}
                    }
                }
            }
            None => drop(names.insert(word(rest))),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn names_crate(text: &str, name: &str) -> bool {
    code(text).any(|line| {
        line.match_indices(&format!("{name}::")).any(|(at, _)| {
            let before = line[..at].chars().last();
            before.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == ':'))
        })
    })
}

#[test]
fn imports_point_down_the_layers() {
    let allowed = |module: &str| MAY_USE.iter().find(|(name, _)| *name == module).map(|(_, uses)| *uses);
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(allowed) = allowed(&source.module) else {
            wrong.push(format!(
                "{}: the module {} has no place in the layers",
                source.path.display(),
                source.module
            ));
            continue;
        };
        for name in used(&source.text, "crate::") {
            let is_module = MAY_USE.iter().any(|(module, _)| *module == name);
            if is_module && name != source.module && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{}: {} must not use {name}", source.path.display(), source.module));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_some_modules_name_some_crates() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (name, allowed) in RESERVED {
            if names_crate(&source.text, name) && !allowed.contains(&source.module.as_str()) {
                wrong.push(format!("{}: {} must not name {name}", source.path.display(), source.module));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_none_is_called_mod() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    ["src", "tests"].iter().for_each(|dir| files_below(&root.join(dir), &mut paths));
    let long = |path: &&PathBuf| std::fs::read_to_string(path).unwrap().lines().count() > LONGEST_FILE;
    let bad: Vec<_> = paths.iter().filter(|path| path.ends_with("mod.rs") || long(path)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn the_reader_of_imports_sees_what_it_should() {
    let text =
        "use crate::{lvm::{Group, View}, types, volume::x};\nfn f() { crate::csi::g() }\n// crate::kube::h\n";
    let found = used(text, "crate::");
    assert_eq!(found, ["csi", "lvm", "types", "volume"].map(str::to_owned).into());
    assert!(names_crate("use tonic::Status;", "tonic") && !names_crate("my_tonic::x", "tonic"));
}
