//! At most a few guests at once: each takes half a gigabyte and a processor.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::Error;

/// How many guests one process runs at once, unless [`VARIABLE`] says otherwise.
const DEFAULT: usize = 3;

/// The environment variable that sets how many guests one process runs at once.
const VARIABLE: &str = "LAB_GUESTS";

/// How long to wait for other guests to end; longer than any of them should run.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to run one guest, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot(());

impl Slot {
    /// Waits until a guest may start.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when no other guest has ended for half an hour.
    pub(crate) fn take() -> Result<Slot, Error> {
        let most = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT).max(1);
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, waited) = FREED
            .wait_timeout_while(taken, PATIENCE, |taken| *taken >= most)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(Error::Invalid(format!(
                "{most} guests are running and none has ended for {PATIENCE:?}"
            )));
        }
        *taken += 1;
        Ok(Slot(()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
