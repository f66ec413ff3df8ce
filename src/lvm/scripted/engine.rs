use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::execute::execute;
use super::fault::{Fault, Script};
use super::state::{Event, Machine};
use crate::lvm::{Command, Engine, EngineError, Reply};
use crate::types::{VgName, VgUuid};

/// An engine of the machine in memory.
pub(super) struct ScriptedEngine(Arc<Inner>);

struct Inner {
    machine: Arc<Mutex<Machine>>,
    script: Arc<Script>,
    devices: Vec<PathBuf>,
    /// Changes given to one engine run one after another.
    turn: tokio::sync::Mutex<()>,
}

impl ScriptedEngine {
    pub(super) fn new(machine: Arc<Mutex<Machine>>, script: Arc<Script>, devices: &[PathBuf]) -> Self {
        let turn = tokio::sync::Mutex::default();
        Self(Arc::new(Inner { machine, script, devices: devices.to_vec(), turn }))
    }
}

#[async_trait::async_trait]
impl Engine for ScriptedEngine {
    #[expect(
        clippy::disallowed_methods,
        reason = "a change goes on when its caller goes away, and tests end"
    )]
    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError> {
        let (inner, vg, command) = (Arc::clone(&self.0), vg.clone(), command.clone());
        tokio::spawn(async move { inner.run(&vg, &command).await }).await.unwrap()
    }
}

impl Inner {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError> {
        let _turn = if command.is_change() { Some(self.turn.lock().await) } else { None };
        self.machine().events.push(Event::Run(command.clone()));
        let fault = self.script.next(command.is_change());
        let begun = self.begin(vg, command);
        if let Some(Fault::Hold(held)) = &fault {
            held.wait().await;
        }
        let reply = self.act(vg, command, fault);
        if let Some(uuid) = begun {
            self.machine().changing.remove(&uuid);
        }
        reply
    }

    /// No two changes to one group overlap, whichever engines they come through.
    fn begin(&self, vg: &VgName, command: &Command) -> Option<VgUuid> {
        let mut machine = self.machine();
        let uuid = machine.vgs.iter().find(|one| one.name == vg.as_str())?.uuid.clone();
        if !command.is_change() {
            return None;
        }
        assert!(machine.changing.insert(uuid.clone()), "two changes to {vg} at once: {command}");
        Some(uuid)
    }

    fn act(&self, vg: &VgName, command: &Command, fault: Option<Fault>) -> Result<Reply, EngineError> {
        let shown = command.to_string();
        let lost = |reason: &str| EngineError::Lost { command: shown.clone(), reason: reason.to_owned() };
        match fault {
            Some(Fault::Refuse) => {
                Ok(Reply { messages: vec!["refused by the script".to_owned()], ..Reply::default() })
            }
            Some(Fault::LostBefore) => Err(lost("it ended with signal 9 (before)")),
            Some(Fault::LostAfter) => {
                execute(&mut self.machine(), &self.devices, vg, command);
                Err(lost("it ended with signal 9 (after)"))
            }
            Some(Fault::Unreadable) => {
                execute(&mut self.machine(), &self.devices, vg, command);
                Err(EngineError::Unreadable { command: shown, reason: "scripted".to_owned() })
            }
            Some(Fault::Hold(_)) | None => Ok(execute(&mut self.machine(), &self.devices, vg, command)),
        }
    }
}
