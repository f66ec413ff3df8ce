//! The programs that a cluster is made of: Go programs, built from one module that pins them all.
//!
//! They are built again only when something that they are made of has changed: see [`key`].

mod key;
mod table;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::paths::{self, GO_MODULE, Paths};
use crate::program::{command, succeed};
use crate::{Error, say};

use table::Program;
pub(crate) use table::Versions;

/// Enough to fetch and compile the largest of them on a cold and busy machine.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

/// The files beside the programs that say what they were built from: those of a cluster, and Kubernetes' own tests.
const KEY: &str = "key";
const SUITE_KEY: &str = "e2e.key";

/// Builds what is not up to date of a cluster's programs. Returns the key of the whole: it changes when any program may
/// have changed.
///
/// # Errors
///
/// When Go is missing or a program cannot be built.
pub(crate) async fn build(paths: &Paths) -> Result<String, Error> {
    build_all(paths, &table::programs(&Versions::of_module()?), KEY).await
}

/// Builds Kubernetes' own tests, unless they are up to date.
///
/// # Errors
///
/// As [`build`].
pub(crate) async fn build_suite(paths: &Paths) -> Result<(), Error> {
    build_all(paths, &[table::suite(&Versions::of_module()?)], SUITE_KEY).await.map(drop)
}

async fn build_all(paths: &Paths, programs: &[Program], key_file: &str) -> Result<String, Error> {
    let module = Path::new(GO_MODULE);
    let key = key::of(module, programs).await?;
    let bin = paths.bin();
    let key_file = bin.join(key_file);
    let complete = programs.iter().all(|program| bin.join(program.name).is_file());
    if complete && fs::read_to_string(&key_file).is_ok_and(|built| built == key) {
        return Ok(key);
    }
    paths::make_folder(&bin)?;
    paths::remove(&key_file)?;
    say(&format!("build {} programs; minutes on a cold machine", programs.len()));
    for (number, program) in programs.iter().enumerate() {
        let start = Instant::now();
        build_one(module, &bin, program).await?;
        let (name, seconds) = (program.name, start.elapsed().as_secs());
        say(&format!("built {}/{} {name}: {seconds} s", number + 1, programs.len()));
    }
    paths::write(&key_file, &key)?;
    Ok(key)
}

async fn build_one(module: &Path, bin: &Path, program: &Program) -> Result<(), Error> {
    let mut go = command("go");
    go.current_dir(module)
        .env("CGO_ENABLED", "0")
        .args(program.verb)
        .args(table::FLAGS)
        .arg("-ldflags")
        .arg(&program.link_flags)
        .arg("-o")
        .arg(bin.join(program.name))
        .arg(program.package);
    succeed(&mut go, BUILD_LIMIT).await.map(drop)
}
