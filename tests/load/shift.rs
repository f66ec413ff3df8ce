//! A shift of callers: they work side by side until they are told to stop, whatever drivers come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::Dice;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::CALLERS;
use super::call::{Call, Outcome, is_open};
use super::caller::{ask, choose, make, write};
use super::ledger::Ledger;
use super::slot::Slot;
use crate::driver::{Client, Driver};

/// How long a caller waits for its answer that does not wait for long, in milliseconds.
const SHORT: std::ops::Range<u64> = 1..1000;

/// How many records somebody writes who has begun to write.
const RECORDS: std::ops::Range<u64> = 1..10;

/// Callers at work.
pub(super) struct Shift {
    callers: JoinSet<()>,
    stop: Arc<AtomicBool>,
    driver: watch::Sender<Option<Client>>,
}

/// What each caller has.
#[derive(Clone)]
struct Desk {
    ledger: Arc<Ledger>,
    vg: String,
    /// How many volumes there may be.
    slots: u64,
    stop: Arc<AtomicBool>,
    driver: watch::Receiver<Option<Client>>,
}

impl Shift {
    /// Lets the callers begin, with at most so many volumes. Each has dice of its own, of this seed.
    pub(super) fn begin(ledger: &Arc<Ledger>, vg: &str, slots: u64, seed: u64) -> Self {
        let (driver, seen) = watch::channel(None);
        let stop = Arc::new(AtomicBool::new(false));
        let (books, vg) = (Arc::clone(ledger), vg.to_owned());
        let desk = Desk { ledger: books, vg, slots, stop: Arc::clone(&stop), driver: seen };
        let mut callers = JoinSet::new();
        for caller in 1..=CALLERS {
            callers.spawn(desk.clone().work(Dice::new(seed, caller)));
        }
        Self { callers, stop, driver }
    }

    /// Sends the callers to that driver.
    pub(super) async fn call(&self, driver: &Driver) {
        self.driver.send_replace(Some(driver.client().await));
    }

    /// The driver is gone: the callers wait for the next.
    pub(super) fn wait(&self) {
        self.driver.send_replace(None);
    }

    /// Tells the callers to begin nothing more.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Fails when a caller has found something wrong.
    pub(super) fn holds(&mut self) {
        while let Some(ended) = self.callers.try_join_next() {
            ended.unwrap();
        }
    }

    /// Ends when each caller has got its last answer, and fails when one has found something wrong.
    pub(super) async fn end(self) {
        let Self { mut callers, stop, driver } = self;
        stop.store(true, Ordering::Relaxed);
        drop(driver);
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
        }
    }
}

impl Desk {
    /// Makes one call after another.
    async fn work(mut self, mut dice: Dice) {
        while !self.stop.load(Ordering::Relaxed) {
            let Ok(client) = self.driver.wait_for(Option::is_some).await.map(|client| client.clone()) else {
                return;
            };
            let Some(client) = client else { return };
            if dice.one_in(20) {
                about_no_volume(&client, &mut dice).await;
            } else if self.about_a_volume(&client, &mut dice).await == Some(Outcome::Open) {
                tokio::time::sleep(dice.time(20..100)).await;
            }
        }
    }

    /// One call about a volume; `None` where another caller is at it.
    async fn about_a_volume(&self, client: &Client, dice: &mut Dice) -> Option<Outcome> {
        let slot = self.slot(dice);
        let Some(_turn) = self.ledger.turn(slot) else {
            tokio::task::yield_now().await;
            return None;
        };
        // Some give up, and some ask twice: Kubernetes does both.
        let patient = if dice.one_in(16) { client.within(dice.time(SHORT)) } else { client.clone() };
        let (volume, twice) = (slot.volume(&patient, &self.vg), dice.one_in(10));
        let call = choose(slot, &self.ledger.facts(slot), dice);
        let mut outcome = make(&self.ledger, slot, &volume, call, twice).await;
        if matches!(call, Call::Write { .. }) {
            for _ in 1..dice.number(RECORDS) {
                let call = write(slot, &self.ledger.facts(slot), dice);
                outcome = make(&self.ledger, slot, &volume, call, false).await;
            }
        }
        Some(outcome)
    }

    /// Mostly one that exists: most calls are about those.
    fn slot(&self, dice: &mut Dice) -> Slot {
        let living = self.ledger.living();
        if living.is_empty() || dice.one_in(4) {
            return Slot(usize::try_from(dice.number(0..self.slots)).unwrap());
        }
        dice.pick(&living)
    }
}

async fn about_no_volume(client: &Client, dice: &mut Dice) {
    if let Err(status) = ask(client, dice).await {
        assert!(is_open(&status), "{status}");
    }
}
