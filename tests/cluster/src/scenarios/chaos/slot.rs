//! A slot: one volume after another comes, is written to, grows, changes its pod and goes.

use std::iter::Sum;
use std::time::{Duration, Instant};

use lab::Dice;
use tokio::sync::watch;

use super::is_stopped_within;
use super::patience::Patience;
use super::volume::{EXTENT, Kind, Volume};
use crate::{Error, Space};

/// All slots begin within that time, in milliseconds.
const START: std::ops::Range<u64> = 0..60_000;
/// How long a user rests between two things that it does, in milliseconds.
const REST: std::ops::Range<u64> = 5_000..40_000;
/// By how many extents a volume grows.
const GROWTH: std::ops::Range<u64> = 1..9;

/// How often something was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Pods that ran, each counted once.
    pub(super) runs: u64,
    pub(super) grown: u64,
    /// Volumes that went, with their claims.
    pub(super) gone: u64,
}

impl Sum for Done {
    fn sum<I: Iterator<Item = Done>>(all: I) -> Done {
        all.fold(Done::default(), |sum, one| Done {
            runs: sum.runs + one.runs,
            grown: sum.grown + one.grown,
            gone: sum.gone + one.gone,
        })
    }
}

/// What a slot leaves.
pub(super) struct Ended {
    /// It is there, and its pod has run.
    pub(super) volume: Volume,
    pub(super) done: Done,
}

/// One of the slots, and who uses its volumes.
pub(super) struct Slot {
    space: Space,
    number: u64,
    dice: Dice,
    begun: Instant,
    stop: watch::Receiver<bool>,
    done: Done,
    /// What its volumes have seen, for an error.
    tale: Vec<String>,
}

impl Slot {
    pub(super) fn new(
        space: &Space,
        number: u64,
        seed: u64,
        begun: Instant,
        stop: watch::Receiver<bool>,
    ) -> Slot {
        let dice = Dice::new(seed, number);
        Slot { space: space.clone(), number, dice, begun, stop, done: Done::default(), tale: Vec::new() }
    }

    /// Volumes come and go until it is time to stop; the last one stays.
    pub(super) async fn run(mut self) -> Result<Ended, Error> {
        match self.live().await {
            Ok(volume) => Ok(Ended { volume, done: self.done }),
            Err(error) => Err(self.explain(&error).await),
        }
    }

    async fn live(&mut self) -> Result<Volume, Error> {
        let start = self.dice.time(START);
        is_stopped_within(&mut self.stop, start).await;
        loop {
            let mut volume = self.comes().await?;
            if self.rests().await {
                return Ok(volume);
            }
            self.grows(&mut volume).await?;
            if self.rests().await {
                return Ok(volume);
            }
            self.changes_pods(&volume).await?;
            if self.rests().await {
                return Ok(volume);
            }
            volume.is_whole().await?;
            self.tell("is deleted");
            volume.end().await?;
            self.done.gone += 1;
            self.tell("is gone");
            // One more comes even if it is time to stop: there is a volume of every slot to be judged.
            self.rests().await;
        }
    }

    async fn comes(&mut self) -> Result<Volume, Error> {
        let (kind, name) = (Kind::of(self.number), format!("slot{}-{}", self.number, self.done.gone));
        let size = self.dice.number(kind.extents()) * EXTENT;
        self.tell(&format!("{name}, {kind:?} of {size} bytes, is asked for"));
        let mut volume =
            Volume::begin(&self.space, &Patience::new(self.stop.clone()), &name, kind, size).await?;
        self.done.runs += 1;
        self.tell("runs");
        self.writes(&mut volume).await?;
        Ok(volume)
    }

    async fn writes(&mut self, volume: &mut Volume) -> Result<(), Error> {
        volume.write(self.dice.number(1..u64::MAX)).await?;
        volume.is_whole().await?;
        self.tell("has written and read");
        Ok(())
    }

    async fn grows(&mut self, volume: &mut Volume) -> Result<(), Error> {
        let size = volume.size + self.dice.number(GROWTH) * EXTENT;
        self.tell(&format!("is to have {size} bytes"));
        volume.grow(size).await?;
        self.done.grown += 1;
        self.tell("has grown");
        volume.is_whole().await?;
        self.writes(volume).await
    }

    async fn changes_pods(&mut self, volume: &Volume) -> Result<(), Error> {
        self.tell("gets another pod");
        volume.replace_pod().await?;
        self.done.runs += 1;
        self.tell("runs again");
        volume.is_whole().await
    }

    /// Does nothing for a while. Returns whether it is time to stop.
    async fn rests(&mut self) -> bool {
        let time = self.dice.time(REST);
        is_stopped_within(&mut self.stop, time).await
    }

    fn tell(&mut self, what: &str) {
        self.tale.push(line(self.begun.elapsed(), what));
    }

    /// The error with what the slot's volumes have seen, and what Kubernetes has to say of the last one.
    async fn explain(&self, error: &Error) -> Error {
        let own = format!("/slot{}-{}:", self.number, self.done.gone);
        let events = self.space.events().await.unwrap_or_else(|error| vec![error.chain()]);
        let events: Vec<_> = events.into_iter().filter(|event| event.contains(&own)).collect();
        let when = line(self.begun.elapsed(), "failed");
        Error::Other(format!(
            "slot {}: {}\n{}\n{when}\nits events:\n{}",
            self.number,
            error.chain(),
            self.tale.join("\n"),
            events.join("\n")
        ))
    }
}

/// What was, and how long after the beginning.
pub(super) fn line(after: Duration, what: &str) -> String {
    format!("{:5.0} s: {what}", after.as_secs_f64())
}
