//! A driver that dies on command: it passes every LVM command and every program on, counts the points
//! between them, and dies at the one that the test has named in a file, or marks them all.
//!
//! What one operation does to the world is a chain of commands and programs. Between two of them nothing
//! else is asked of the machine but what lies in the driver's own hands (mounts, zeroes), so that the
//! points before and after each are all the states that a kill can leave.

use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use quarry::exec::{Effect, ExecError, Invocation, Output, Runner};
use quarry::lvm::{Backend, Command, Engine, EngineError, Fingerprint, PvRow, Reply};
use quarry::types::VgName;

use super::recorder;

/// The test writes the plan here, before an operation.
const PLAN: &str = "/run/crash-plan";

/// The driver writes here what it passed, for the message of a test that fails.
const PASSED: &str = "/run/crash-passed";

/// How it is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The driver is killed, at any point.
    Kill,
    /// The machine's power is cut. Only points around changes count: reading leaves nothing behind.
    Cut,
    /// Not at all: each point is marked in what is recorded of the disks.
    Record,
}

/// Tells the driver to die at its `number`th point from now on, counted from 1.
pub(super) fn set(end: End, number: usize) {
    let _ = fs::remove_file(PASSED);
    let unfinished = format!("{PLAN}.new");
    fs::write(&unfinished, format!("{end:?} {number}")).unwrap();
    fs::rename(unfinished, PLAN).unwrap();
}

/// Lets the driver live.
pub(super) fn disarm() {
    let _ = fs::remove_file(PLAN);
}

/// The points that the driver has passed since the plan was made, the last one being where it died.
pub(super) fn passed() -> String {
    fs::read_to_string(PASSED).unwrap_or_default()
}

/// In the driver: counts the points.
#[derive(Debug, Default)]
pub(super) struct Trap(Mutex<(String, usize)>);

impl Trap {
    fn before(&self, what: impl Display, is_change: bool) {
        self.pass(format!("before: {what}"), is_change);
    }

    fn after(&self, what: impl Display, is_change: bool) {
        if is_change {
            self.pass(format!("after: {what}"), true);
        }
    }

    fn pass(&self, point: String, is_change: bool) {
        let Ok(plan) = fs::read_to_string(PLAN) else { return };
        let (end, number) = plan.split_once(' ').unwrap();
        if end == format!("{:?}", End::Record) {
            return recorder::mark("point");
        }
        let cut = end == format!("{:?}", End::Cut);
        if cut && !is_change {
            return;
        }
        let mut seen = self.0.lock().unwrap();
        if seen.0 != plan {
            *seen = (plan.clone(), 0);
        }
        seen.1 += 1;
        let mut file = fs::File::options().create(true).append(true).open(PASSED).unwrap();
        writeln!(file, "{point}").unwrap();
        if number.parse() == Ok(seen.1) {
            if cut { lab::power_cut() } else { die() }
        }
    }
}

/// As `kill -9` does it: no destructor runs, no buffer is written.
fn die() -> ! {
    let own = nix::unistd::Pid::this();
    nix::sys::signal::kill(own, nix::sys::signal::Signal::SIGKILL).unwrap();
    std::process::abort()
}

/// A backend with a trap before and after every command.
pub(super) struct Trapped<T: ?Sized> {
    pub(super) inner: Arc<T>,
    pub(super) trap: Arc<Trap>,
}

#[async_trait::async_trait]
impl Backend for Trapped<dyn Backend> {
    async fn look(&self) -> Result<Vec<PvRow>, EngineError> {
        self.inner.look().await
    }

    fn system_id(&self) -> Option<&str> {
        self.inner.system_id()
    }

    fn open(&self, vg: &VgName, devices: &[PathBuf]) -> Arc<dyn Engine> {
        Arc::new(Trapped { inner: self.inner.open(vg, devices), trap: Arc::clone(&self.trap) })
    }

    async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
        self.inner.fingerprint(devices).await
    }

    async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.trap.before("flush the metadata", false);
        self.inner.flush(devices).await
    }

    /// No point: it changes nothing that anybody relies on, and comes whenever it likes.
    async fn back_up(&self, vg: &VgName, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.inner.back_up(vg, devices).await
    }
}

#[async_trait::async_trait]
impl Engine for Trapped<dyn Engine> {
    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError> {
        self.trap.before(command, command.is_change());
        let reply = self.inner.run(vg, command).await;
        self.trap.after(command, command.is_change());
        reply
    }
}

#[async_trait::async_trait]
impl Runner for Trapped<dyn Runner> {
    async fn run(&self, invocation: Invocation) -> Result<Output, ExecError> {
        let (what, is_change) = (invocation.program, invocation.effect == Effect::Change);
        self.trap.before(what, is_change);
        let output = self.inner.run(invocation).await;
        self.trap.after(what, is_change);
        output
    }
}
