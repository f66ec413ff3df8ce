use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::VolumeError;
use crate::types::LvUuid;

/// The preparations that run now, so that whoever wants a volume joins the one that is under way.
#[derive(Debug, Default)]
pub(super) struct Preparations(Mutex<BTreeMap<LvUuid, Preparation>>);

/// A preparation that runs, or has just ended.
#[derive(Debug, Clone)]
pub(super) struct Preparation {
    outcome: watch::Receiver<Option<Outcome>>,
    stop: CancellationToken,
    for_use: Arc<AtomicBool>,
}

/// A preparation for whoever is to carry it out. Where this is dropped, those who wait are told.
#[derive(Debug)]
pub(super) struct Duty {
    lv: LvUuid,
    tell: watch::Sender<Option<Outcome>>,
    stop: CancellationToken,
    for_use: Arc<AtomicBool>,
}

/// What a volume is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Its user comes next.
    Use,
    /// Something is done about it.
    Change,
}

type Outcome = Result<(), Arc<VolumeError>>;

impl Preparations {
    fn running(&self) -> MutexGuard<'_, BTreeMap<LvUuid, Preparation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume's preparation, and the duty to carry it out where none is under way. `stop` ends it.
    pub(super) fn join(&self, lv: &LvUuid, stop: &CancellationToken) -> (Preparation, Option<Duty>) {
        let mut running = self.running();
        if let Some(preparation) = running.get(lv) {
            return (preparation.clone(), None);
        }
        let (tell, outcome) = watch::channel(None);
        let (stop, for_use) = (stop.child_token(), Arc::<AtomicBool>::default());
        let preparation = Preparation { outcome, stop: stop.clone(), for_use: Arc::clone(&for_use) };
        running.insert(lv.clone(), preparation.clone());
        (preparation, Some(Duty { lv: lv.clone(), tell, stop, for_use }))
    }

    /// Tells those who wait how it went. Whoever wants the volume from now on looks at it anew.
    pub(super) fn done(&self, duty: Duty, outcome: Result<(), VolumeError>) {
        self.running().remove(&duty.lv);
        duty.tell.send_replace(Some(outcome.map_err(Arc::new)));
    }

    /// Ends the volume's preparation at its next step, and waits for that end.
    pub(super) async fn end(&self, lv: &LvUuid) {
        let running = self.running().get(lv).cloned();
        if let Some(preparation) = running {
            preparation.stop.cancel();
            // How it ended does not matter: the caller looks at the volume next.
            drop(preparation.wait(Purpose::Change).await);
        }
    }
}

impl Duty {
    /// Says when the preparation is to stop.
    pub(super) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether somebody waits who is going to use the volume at once.
    pub(super) fn is_for_use(&self) -> bool {
        self.for_use.load(Ordering::Relaxed)
    }
}

impl Preparation {
    /// Waits until the volume is prepared.
    ///
    /// # Errors
    /// Why it could not be.
    pub(super) async fn wait(mut self, purpose: Purpose) -> Result<(), VolumeError> {
        if purpose == Purpose::Use {
            self.for_use.store(true, Ordering::Relaxed);
        }
        let done = self.outcome.wait_for(Option::is_some).await;
        match done.ok().and_then(|outcome| outcome.clone()) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(VolumeError::Preparation(error)),
            None => Err(VolumeError::ShuttingDown),
        }
    }
}
