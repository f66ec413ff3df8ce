//! strace, which sends signals to programs at certain system calls of theirs.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::driver::processes::{is_lvm_shell, parent_of, pids, status, threads};
use crate::driver::{Driver, until};

/// The driver's only lvm shell, if it has one now.
pub(super) fn shell_of(driver: &Driver) -> Option<u32> {
    let mut shells = processes("lvm").into_iter().filter(|pid| is_lvm_shell(*pid));
    shells.find(|pid| parent_of(*pid) == Some(driver.pid()))
}

/// The processes that run a program of that name.
pub(super) fn processes(name: &str) -> Vec<u32> {
    pids().filter(|pid| status(*pid, "Name").is_some_and(|found| found == name)).collect()
}

/// Sends a signal.
pub(super) fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// What is done to a program as it makes a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// It is killed: the call is not made.
    Kill,
    /// It is held until strace lets go of it. SIGSTOP would not do: a kernel that sees a process stand
    /// still whose parent dies sends it SIGHUP.
    Hold,
}

impl Act {
    /// As strace(1) wants it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Kill => "signal=KILL",
            Self::Hold => "delay_enter=1000s",
        }
    }
}

/// A strace that sits on an lvm shell and sees its device-mapper calls. It lets go of the shell when it
/// is dropped.
pub(super) struct Tracer(Child);

/// The calls that strace has seen the end of.
const LOG: &str = "/run/strace.log";

/// Starts a strace on a process.
fn trace(pid: u32, arguments: &[&str]) -> Child {
    let _ = fs::remove_file(LOG);
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o", LOG]).args(arguments).args(["-p", &pid.to_string()]);
    strace.stdin(Stdio::null()).spawn().unwrap()
}

/// The calls of device mapper that change something (linux/dm-ioctl.h).
const CHANGES: [&str; 5] =
    ["DM_DEV_CREATE", "DM_DEV_REMOVE", "DM_DEV_SUSPEND", "DM_TABLE_LOAD", "DM_TABLE_CLEAR"];

impl Tracer {
    /// Attaches to a shell, and acts as that makes its `number`th call from now on.
    pub(super) async fn attach(shell: u32, act: Act, number: usize) -> Self {
        Self::start(shell, &["-e", &format!("inject=ioctl:{}:when={number}", act.word())]).await
    }

    /// Attaches to a shell, and only looks.
    pub(super) async fn look(shell: u32) -> Self {
        Self::start(shell, &[]).await
    }

    async fn start(shell: u32, arguments: &[&str]) -> Self {
        let ioctls = ["-P", "/dev/mapper/control", "-e", "trace=ioctl"];
        let strace = trace(shell, &[&ioctls, arguments].concat());
        let tracer = strace.id().to_string();
        until("strace has attached", async || status(shell, "TracerPid").as_ref() == Some(&tracer)).await;
        Self(strace)
    }

    /// Attaches to all threads of a driver, and kills it as one of them makes its `number`th change to the mount table
    /// from now on: the call is not made.
    pub(super) async fn kill_at_mount(driver: u32, number: usize) -> Self {
        let inject = format!("inject=mount,umount2:{}:when={number}", Act::Kill.word());
        let strace = trace(driver, &["-f", "-e", "trace=mount,umount2", "-e", &inject]);
        let tracer = strace.id().to_string();
        let is_traced = |thread: u32| status(thread, "TracerPid").is_none_or(|found| found == tracer);
        until("strace has attached", async || threads(driver).all(is_traced)).await;
        Self(strace)
    }

    /// How many calls are over.
    pub(super) fn calls(&self) -> usize {
        fs::read_to_string(LOG).unwrap_or_default().lines().count()
    }

    /// The numbers of the calls at which a kill leaves a state of its own: each call that changes
    /// something, and the one after it. Between those lvm only asks, or commits its metadata, which it
    /// does with a device suspended: before the call that resumes it.
    pub(super) fn turning_points(&self) -> Vec<usize> {
        let log = fs::read_to_string(LOG).unwrap();
        let changes =
            (1..).zip(log.lines()).filter(|(_, line)| CHANGES.iter().any(|call| line.contains(call)));
        let mut points: Vec<usize> = changes.flat_map(|(number, _)| [number, number + 1]).collect();
        points.dedup();
        assert!(!points.is_empty(), "strace sees no change:\n{log}");
        points
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        send(self.0.id(), Signal::SIGTERM);
        self.0.wait().unwrap();
    }
}
