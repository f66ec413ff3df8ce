use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::View;
use crate::types::LvName;

/// What is known of a group without asking its disks.
#[derive(Default)]
pub(super) struct Memory(Mutex<Known>);

#[derive(Default)]
struct Known {
    view: Option<Arc<View>>,
    /// Why the group could not be read the last time that somebody tried.
    unread: Option<String>,
    /// The LV that LVM was asked to make since the view was read: it may be there.
    sent: Option<LvName>,
}

impl Memory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the group looked like when it could last be read.
    pub(super) fn view(&self) -> Option<Arc<View>> {
        self.known().view.clone()
    }

    /// The same, if it could be read the last time; otherwise why not.
    pub(super) fn last(&self) -> Result<Arc<View>, String> {
        let known = self.known();
        match &known.unread {
            Some(why) => Err(why.clone()),
            None => known.view.clone().ok_or_else(|| "it has not been read yet".to_owned()),
        }
    }

    /// Whether the group may hold an LV of that name; `None` if it was never read.
    pub(super) fn may_hold(&self, name: &LvName) -> Option<bool> {
        let known = self.known();
        let view = known.view.as_ref()?;
        Some(view.lv(name).is_some() || known.sent.as_ref() == Some(name))
    }

    /// It was read, and with that the outcome of everything that was sent.
    pub(super) fn keep(&self, view: &Arc<View>) {
        let mut known = self.known();
        (known.view, known.sent) = (Some(Arc::clone(view)), None);
    }

    /// LVM is asked to make an LV.
    pub(super) fn sends(&self, name: &LvName) {
        self.known().sent = Some(name.clone());
    }

    /// Somebody tried to read it, and that is why it failed. Tells whether this is news.
    pub(super) fn tried(&self, unread: Option<String>) -> bool {
        let mut known = self.known();
        let news = known.unread != unread;
        known.unread = unread;
        news
    }
}
