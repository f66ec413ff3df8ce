//! A small LVM in memory, for unit tests of what is built on the engine.
//!
//! It executes commands as LVM does (a lab test holds the two to the same contract), and things can be
//! made to happen to it: commands fail, hang or are lost, disks vanish, somebody else commits.
//!
//! ```ignore
//! let lvm = ScriptedBackend::new();
//! let uuid = lvm.add_vg("vg0", &[("/dev/sda", 100), ("/dev/sdb", 100)]);
//! lvm.on_change(1, Fault::LostAfter);                              // the next change
//! let held = lvm.hold_change(2);                                   // the one after that
//! lvm.edit("vg0", |vg| vg.lv("pvc-1").suspended = true);           // what is in no metadata
//! lvm.commit("vg0", |vg| vg.pv("/dev/sdb").present = false);       // as another host would
//! assert_eq!(lvm.changes().len(), 1);
//! ```

mod engine;
mod execute;
mod fault;
mod rows;
mod state;

pub(crate) use fault::{Fault, Held};
pub(crate) use state::{Event, Vg};

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ScriptedEngine;
use fault::Script;
use state::Machine;

use super::{Backend, Command, Engine, EngineError, Fingerprint, PvRow};
use crate::types::{VgName, VgUuid};

/// An LVM in memory, and what was asked of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptedBackend {
    machine: Arc<Mutex<Machine>>,
    script: Arc<Script>,
    system_id: Option<String>,
}

impl ScriptedBackend {
    /// A machine without any volume group. Clones of this value are the same machine.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A machine with a system id.
    pub(crate) fn with_system_id(id: &str) -> Arc<Self> {
        Arc::new(Self { system_id: Some(id.to_owned()), ..Self::default() })
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a volume group of disks with so many extents of 4 MiB each.
    pub(crate) fn add_vg(&self, name: &str, disks: &[(&str, u64)]) -> VgUuid {
        self.machine().add_vg(name, disks)
    }

    /// Changes or reads what is in no metadata: devices of LVs, disks that come and go.
    pub(crate) fn edit<T>(&self, vg: &str, edit: impl FnOnce(&mut Vg) -> T) -> T {
        edit(self.machine().vg(vg))
    }

    /// Changes a group as another program would: with a commit, which the fingerprint shows.
    pub(crate) fn commit<T>(&self, vg: &str, change: impl FnOnce(&mut Vg) -> T) -> T {
        let mut machine = self.machine();
        let vg = machine.vg(vg);
        vg.seqno += 1;
        change(vg)
    }

    /// Lets the power fail: commits that were not flushed are gone, and no LV is active.
    pub(crate) fn cut_power(&self) {
        self.machine().cut_power();
    }

    /// Lets `fault` befall the `nth` change from now on; 1 is the next.
    pub(crate) fn on_change(&self, nth: usize, fault: Fault) {
        self.script.add(true, nth, fault);
    }

    /// Lets `fault` befall the `nth` report from now on; 1 is the next.
    pub(crate) fn on_report(&self, nth: usize, fault: Fault) {
        self.script.add(false, nth, fault);
    }

    /// Holds the `nth` change from now on before it has any effect, until it is released.
    pub(crate) fn hold_change(&self, nth: usize) -> Held {
        let held = Held::default();
        self.script.add(true, nth, Fault::Hold(held.clone()));
        held
    }

    /// Lets looks fail, or work again.
    pub(crate) fn fail_looks(&self, fail: bool) {
        self.machine().failing.looks = fail;
    }

    /// Lets flushes fail, or work again.
    pub(crate) fn fail_flushes(&self, fail: bool) {
        self.machine().failing.flushes = fail;
    }

    /// Lets backups fail, or work again.
    pub(crate) fn fail_backups(&self, fail: bool) {
        self.machine().failing.backups = fail;
    }

    /// All that was asked of the machine since it was made or since the last call, in order.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.machine().events)
    }

    /// The changes among the events, which stay.
    pub(crate) fn changes(&self) -> Vec<Command> {
        let machine = self.machine();
        let changes = machine.events.iter().filter_map(|event| match event {
            Event::Run(command) if command.is_change() => Some(command.clone()),
            _ => None,
        });
        changes.collect()
    }

    /// How many of the events are such; the events stay.
    pub(crate) fn count(&self, such: impl Fn(&Event) -> bool) -> usize {
        self.machine().events.iter().filter(|event| such(event)).count()
    }
}

fn broken(what: &'static str) -> EngineError {
    EngineError::disk(Path::new("/dev/scripted"), what, std::io::Error::other("scripted"))
}

#[async_trait::async_trait]
impl Backend for ScriptedBackend {
    async fn look(&self) -> Result<Vec<PvRow>, EngineError> {
        let mut machine = self.machine();
        machine.events.push(Event::Look);
        if machine.failing.looks { Err(broken("look")) } else { Ok(rows::pvs(&machine.vgs)) }
    }

    fn system_id(&self) -> Option<&str> {
        self.system_id.as_deref()
    }

    fn open(&self, vg: &VgName, devices: &[PathBuf]) -> Arc<dyn Engine> {
        let opened = Event::Open(vg.clone(), devices.to_vec());
        self.machine().events.push(opened);
        Arc::new(ScriptedEngine::new(Arc::clone(&self.machine), Arc::clone(&self.script), devices))
    }

    async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
        let mut machine = self.machine();
        machine.events.push(Event::Fingerprint);
        devices
            .iter()
            .map(|device| machine.header(device))
            .collect::<Result<Vec<_>, _>>()
            .map(|all| Fingerprint(all.concat()))
    }

    async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError> {
        let mut machine = self.machine();
        machine.events.push(Event::Flush);
        if machine.failing.flushes {
            return Err(broken("flush"));
        }
        machine.flush(devices);
        Ok(())
    }

    async fn back_up(&self, vg: &VgName, _devices: &[PathBuf]) -> Result<(), EngineError> {
        let mut machine = self.machine();
        machine.events.push(Event::BackUp(vg.clone()));
        if machine.failing.backups { Err(broken("back up")) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "scripted/tests.rs"]
mod tests;
