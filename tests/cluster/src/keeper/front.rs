//! The process that a person starts: it prepares all that needs the outside world, then starts the keeper.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::state::{State, lock};
use super::{Purpose, Task};
use crate::options::Options;
use crate::paths::{self, Paths};
use crate::{Error, images, namespaces, programs, say, scenarios};

/// How long another process may build what this one needs too.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
const PAUSE: Duration = Duration::from_secs(1);
/// How long a cluster may take to go down in good order, and how long the kernel to end it.
const END_LIMIT: Duration = Duration::from_secs(60);
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// Builds all that a cluster is made of. One process at a time does.
pub(crate) async fn build(paths: &Paths) -> Result<PathBuf, Error> {
    let _lock = build_lock(paths).await?;
    images::prepare(paths).await
}

/// Builds Kubernetes' own tests.
pub(crate) async fn build_suite(paths: &Paths) -> Result<(), Error> {
    let _lock = build_lock(paths).await?;
    programs::build_suite(paths).await
}

async fn build_lock(paths: &Paths) -> Result<File, Error> {
    let deadline = Instant::now() + BUILD_LIMIT;
    let mut told = false;
    loop {
        if let Some(lock) = lock(paths, "build")? {
            return Ok(lock);
        }
        if Instant::now() > deadline {
            let what = "another build to end".to_owned();
            return Err(Error::Late { what, limit: BUILD_LIMIT, seen: "it runs".to_owned() });
        }
        if !std::mem::replace(&mut told, true) {
            say("wait for another build to end");
        }
        sleep(PAUSE).await;
    }
}

/// Brings a cluster up that stays.
pub(crate) async fn up(paths: &Paths, options: Options) -> Result<(), Error> {
    let mut keeper = start(paths, options, Purpose::Stay).await?;
    // It closes its end when the cluster is up; dying closes it too.
    let output = keeper.stderr.take();
    let copying = spawn_blocking(move || output.map_or(Ok(()), pass_on));
    let _lifeline = keeper.stdin.take();
    copying.await.map_err(Error::other)?.map_err(Error::io("pass the keeper's words on"))?;
    if !State::load(paths).is_some_and(|state| state.ready) {
        return Err(Error::other(format!("the cluster did not come up; logs: {}", paths.logs().display())));
    }
    write_kubectl(paths)?;
    say(&format!("kubeconfig, for programs in the cluster's network: {}", paths.kubeconfig().display()));
    say(&format!("look around: {} get nodes", paths.kubectl().display()));
    Ok(())
}

/// Runs something in a cluster of its own. Fails without an error when some of it has.
pub(crate) async fn run(paths: &Paths, options: Options, purpose: Purpose) -> Result<ExitCode, Error> {
    let mut keeper = start(paths, options, purpose).await?;
    let mut lifeline = keeper.stdin.take();
    let mut end = spawn_blocking(move || keeper.wait());
    let mut signals = [signal(SignalKind::interrupt()), signal(SignalKind::terminate())];
    let [interrupt, terminate] = &mut signals;
    let status = loop {
        let (interrupt, terminate) = (received(interrupt), received(terminate));
        tokio::select! {
            status = &mut end => break status,
            () = interrupt, if lifeline.is_some() => {}
            () = terminate, if lifeline.is_some() => {}
        }
        say("take the cluster down");
        lifeline = None;
    };
    let status: ExitStatus = status.map_err(Error::other)?.map_err(Error::io("wait for the cluster"))?;
    tidy(paths)?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(1) => Ok(ExitCode::FAILURE),
        _ => Err(Error::other(format!("the cluster ended: {status}; logs: {}", paths.logs().display()))),
    }
}

async fn received(signal: &mut io::Result<tokio::signal::unix::Signal>) {
    match signal {
        Ok(signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// Prepares everything and starts the keeper.
async fn start(paths: &Paths, options: Options, purpose: Purpose) -> Result<Child, Error> {
    options.count()?;
    match &purpose {
        Purpose::Stay => {}
        Purpose::Run(names) => check_driver(&options, &scenarios::of_the_driver(names)?)?,
        Purpose::Suite(_) => check_driver(&options, &["the suite"])?,
    }
    let disk = build(paths).await?;
    if State::load(paths).is_some() {
        return Err(Error::other("a cluster is up already: `make cluster-down` takes it down"));
    }
    sweep(paths)?;
    let stays = purpose == Purpose::Stay;
    let task = serde_json::to_string(&Task { options, disk, purpose }).map_err(Error::other)?;
    let mut command = Command::new(paths.program());
    command.arg("keep").arg(task).stdin(Stdio::piped());
    if stays {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
    }
    namespaces::start_first(command)
}

/// What needs a driver has to have one; to find out costs nothing yet.
fn check_driver(options: &Options, need: &[&str]) -> Result<(), Error> {
    match &options.driver {
        None if !need.is_empty() => Err(Error::other(format!(
            "give --driver ARCHIVE for the driver's image: {} need it",
            need.join(", ")
        ))),
        Some(image) if !image.is_file() => {
            Err(Error::other(format!("there is no {}: `make image` builds it", image.display())))
        }
        _ => Ok(()),
    }
}

fn pass_on(from: impl io::Read) -> io::Result<()> {
    for line in BufReader::new(from).lines() {
        writeln!(io::stderr(), "{}", line?)?;
    }
    Ok(())
}

/// Takes the cluster down, if there is one, and removes what it has left.
pub(crate) fn down(paths: &Paths) -> Result<(), Error> {
    match State::load(paths) {
        None => say("no cluster is up"),
        Some(state) => {
            if !state.end(Signal::SIGTERM, END_LIMIT)? && !state.end(Signal::SIGKILL, KILL_LIMIT)? {
                return Err(Error::other(format!("process {} does not end", state.process())));
            }
            say("the cluster is down");
        }
    }
    sweep(paths)
}

/// Removes what a cluster has left that is not there any more, but for its logs.
fn tidy(paths: &Paths) -> Result<(), Error> {
    paths::remove(&paths.kubectl())?;
    paths::remove(&paths.run())
}

/// Like [`tidy`], also for a cluster that was killed.
fn sweep(paths: &Paths) -> Result<(), Error> {
    // It must not be one that is just being started.
    let Some(_lock) = lock(paths, "cluster")? else {
        return Err(Error::other("another cluster is just being started or taken down"));
    };
    tidy(paths)?;
    lab::sweep_leftovers().map_err(Error::from)
}

/// A script, so that kubectl has a path that a person can type.
fn write_kubectl(paths: &Paths) -> Result<(), Error> {
    let path = paths.kubectl();
    let program = paths.program().display().to_string().replace('\'', r"'\''");
    paths::write(&path, format!("#!/bin/sh\nexec '{program}' kubectl \"$@\"\n"))?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).map_err(Error::at("set the mode of", &path))
}
