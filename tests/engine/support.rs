//! What the engine's tests share: a guest with a volume group, and the backend under test in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lab::Machine;
use quarry::exec::{Host, Program, Programs};
use quarry::lvm::{Backend, Command, Engine, EngineError, LocalBackend, LocalOptions, LvRow, Reply};
use quarry::types::{Extents, LvName, VgName};
use tokio_util::task::TaskTracker;

use crate::driver::processes::{pids, status};
pub(super) use crate::driver::{lock_group as lock, waits_for_lock};

/// Boots a machine with so many disks of 256 MiB, makes the group `vg0` on all of them, and tests.
pub(super) fn on_disks(disks: usize, test: impl AsyncFnOnce(Bench)) {
    on_machine(machine(disks), test);
}

/// A machine with so many disks of 256 MiB.
pub(super) fn machine(disks: usize) -> Machine {
    (0..disks).fold(Machine::new(), |machine, _| machine.disk("256M"))
}

/// Boots the machine, makes the group `vg0` on all of its disks, and tests.
pub(super) fn on_machine(machine: Machine, test: impl AsyncFnOnce(Bench)) {
    machine.boot(|| {
        run(async {
            let disks: Vec<String> = lab::disks().iter().map(|disk| disk.display().to_string()).collect();
            sh(&format!("vgcreate -q vg0 {}", disks.join(" ")));
            test(Bench::start(LocalOptions::default()).await).await;
            assert_eq!(lvms(), [0u32; 0], "an lvm was left behind");
        });
    });
}

/// Runs a test on a runtime of its own.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(test);
}

/// A backend, and an engine for `vg0`. Whoever has one ends it with [`Bench::end`], or shows that it
/// ends otherwise.
pub(super) struct Bench {
    pub(super) backend: Arc<LocalBackend>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) tracker: TaskTracker,
    pub(super) vg: VgName,
    pub(super) devices: Vec<PathBuf>,
}

impl Bench {
    pub(super) async fn start(options: LocalOptions) -> Self {
        let tracker = TaskTracker::new();
        let host = Host::new(Programs::find(&Program::LOOK).unwrap());
        let backend = LocalBackend::start(host, tracker.clone(), options).await.unwrap();
        let (vg, devices): (VgName, _) = ("vg0".parse().unwrap(), lab::disks());
        let engine = backend.open(&vg, &devices);
        Self { backend: Arc::new(backend), engine, tracker, vg, devices }
    }

    /// The same with other options, or as another driver beside this one.
    pub(super) async fn again(self, options: LocalOptions) -> Self {
        self.end().await;
        Self::start(options).await
    }

    /// Drops the engine, and waits until nothing of it is left.
    pub(super) async fn end(self) {
        let Self { engine, backend, tracker, .. } = self;
        drop((engine, backend));
        ended(&tracker).await;
    }

    /// The process number of the engine's shell, which must be the only one.
    pub(super) fn shell(&self) -> u32 {
        let shells = lvms();
        assert_eq!(shells.len(), 1, "{shells:?}");
        shells[0]
    }

    pub(super) async fn ask(&self, command: &Command) -> Result<Reply, EngineError> {
        self.engine.run(&self.vg, command).await
    }

    /// Runs a command that LVM must do.
    #[track_caller]
    pub(super) fn must(&self, command: Command) -> impl Future<Output = Reply> {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.ask(&command).await.unwrap_or_else(|error| panic!("{caller}: {error}"));
            assert!(reply.success, "{caller}: lvm did not {command}: {:?}", reply.messages);
            reply
        }
    }

    /// Runs a command that LVM must refuse, and tells why.
    pub(super) async fn must_not(&self, command: Command) -> String {
        let reply = self.ask(&command).await.unwrap();
        assert!(!reply.success, "lvm did {command}");
        reply.messages.join("; ")
    }

    pub(super) async fn volume(&self, lv: &str) -> LvRow {
        self.must(Command::Volume(name(lv))).await.lvs.into_iter().next().unwrap()
    }

    pub(super) async fn names(&self) -> Vec<String> {
        self.must(Command::Volumes).await.lvs.into_iter().map(|lv| lv.name).collect()
    }

    pub(super) async fn seqno(&self) -> u64 {
        self.must(Command::Group).await.vgs[0].seqno
    }
}

pub(super) fn name(name: &str) -> LvName {
    name.parse().unwrap()
}

pub(super) fn create(lv: &str, extents: u64) -> Command {
    Command::Create { name: name(lv), extents: Extents::new(extents), tags: vec!["q.s=b".to_owned()] }
}

pub(super) fn extend(lv: &str, to: u64) -> Command {
    Command::Extend { name: name(lv), to: Extents::new(to), from: Vec::new() }
}

/// Waits until everything on the tracker has ended.
pub(super) async fn ended(tracker: &TaskTracker) {
    tracker.close();
    let ended = tokio::time::timeout(Duration::from_secs(20), tracker.wait()).await;
    assert!(ended.is_ok(), "something of the engine goes on after its end");
}

/// Runs a shell command line that must succeed. Returns what it printed.
#[track_caller]
pub(super) fn sh(line: &str) -> String {
    let output = shell(line).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{line}: {stdout}{stderr}");
    stdout.trim().to_owned()
}

/// A shell command line, not yet run.
pub(super) fn shell(line: &str) -> std::process::Command {
    let mut command = std::process::Command::new("/bin/bash");
    command.args(["-e", "-o", "pipefail", "-c", line]).stdin(std::process::Stdio::null());
    command
}

/// The process numbers of every lvm that runs, zombies too, without those that stock commands started.
pub(super) fn lvms() -> Vec<u32> {
    pids().filter(|pid| status(*pid, "Name").is_some_and(|name| name == "lvm")).collect()
}

pub(super) fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// A variable of the process's environment.
pub(super) fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let mut pairs = environment.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// Waits until `holds`, for at most 20 s.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(tokio::time::Instant::now() < patience, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
