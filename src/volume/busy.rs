use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::VolumeError;
use crate::types::LvName;

/// Which volumes something is being done to. One thing at a time: whoever comes second is told to come
/// again (CSI spec, "Error Scheme", ABORTED).
#[derive(Debug, Clone, Default)]
pub(super) struct Busy(Arc<Mutex<BTreeSet<LvName>>>);

/// Holds a volume until it is dropped.
#[derive(Debug)]
pub(super) struct BusyGuard {
    busy: Busy,
    name: LvName,
}

impl Busy {
    /// Takes the volume, for `what`.
    ///
    /// # Errors
    /// [`VolumeError::Busy`] while somebody else has it.
    pub(super) fn take(&self, name: &LvName, what: &str) -> Result<BusyGuard, VolumeError> {
        if !self.set().insert(name.clone()) {
            return Err(VolumeError::Busy {
                what: format!("another operation on {name} ({what} must wait for it)"),
            });
        }
        Ok(BusyGuard { busy: self.clone(), name: name.clone() })
    }

    fn set(&self) -> MutexGuard<'_, BTreeSet<LvName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.busy.set().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let (busy, name) = (Busy::default(), "a".parse().unwrap());
        let first = busy.take(&name, "stage").unwrap();
        assert!(matches!(busy.take(&name, "delete"), Err(VolumeError::Busy { .. })));
        assert!(busy.take(&"b".parse().unwrap(), "delete").is_ok());
        drop(first);
        assert!(busy.take(&name, "delete").is_ok());
    }
}
