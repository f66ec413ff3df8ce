use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// What can befall a command.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// LVM refuses it: no effect, a message.
    Refuse,
    /// LVM dies before it had an effect.
    LostBefore,
    /// LVM dies after it had its effect.
    LostAfter,
    /// LVM's answer is no answer; the command had its effect.
    Unreadable,
    /// It waits before it has an effect.
    Hold(Held),
}

/// A command that is held.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    reached: Arc<Notify>,
    released: Arc<Notify>,
}

impl Held {
    /// Waits until the command has come.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets the command go on.
    pub(crate) fn release(&self) {
        self.released.notify_one();
    }

    pub(super) async fn wait(&self) {
        self.reached.notify_one();
        self.released.notified().await;
    }
}

/// The faults to come.
#[derive(Debug, Default)]
pub(super) struct Script(Mutex<Vec<Planned>>);

#[derive(Debug)]
struct Planned {
    change: bool,
    left: usize,
    fault: Fault,
}

impl Script {
    pub(super) fn add(&self, change: bool, nth: usize, fault: Fault) {
        assert!(nth > 0, "the next one is number 1");
        let mut planned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        planned.push(Planned { change, left: nth, fault });
    }

    /// The fault for a command that runs now.
    pub(super) fn next(&self, change: bool) -> Option<Fault> {
        let mut planned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        planned
            .iter_mut()
            .filter(|one| one.change == change)
            .for_each(|one| one.left = one.left.saturating_sub(1));
        let due = planned.iter().position(|one| one.left == 0)?;
        Some(planned.remove(due).fault)
    }
}
