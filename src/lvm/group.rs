use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedMutexGuard, watch};

use super::changes::Changes;
use super::memory::Memory;
use super::queue::Queue;
use super::seat::{Seat, same_disks};
use super::{Backend, GroupError, Health, Sighting, Turn, View, sightings};
use crate::types::{Bytes, LvName, VgName, VgUuid, chain};

/// What a turn is taken for, which decides what the group's health must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// To change the group's metadata: the group must be healthy.
    Change,
    /// To make or resume devices of volumes that are whole: a group that lacks a disk will do.
    Device,
}

/// One volume group of this machine.
///
/// Readers take [`Group::view`], which costs one small read per disk while nothing has changed. Whoever
/// changes something takes the group's only writer turn. A change that does not end within the group's
/// patience makes the group stuck: from then on nobody waits for the turn, until it does end.
pub struct Group {
    uuid: VgUuid,
    reserve: Bytes,
    patience: Duration,
    pub(super) backend: Arc<dyn Backend>,
    sighting: Mutex<Option<Sighting>>,
    seat: Arc<tokio::sync::Mutex<Seat>>,
    queue: Queue,
    pub(super) memory: Memory,
    stuck: watch::Sender<bool>,
    changes: Changes,
    pub(super) changed: Notify,
}

impl Group {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        sighting: Sighting,
        reserve: Bytes,
        patience: Duration,
        changes: Changes,
    ) -> Arc<Self> {
        Arc::new(Self {
            uuid: sighting.vg.uuid.clone(),
            reserve,
            patience,
            backend,
            sighting: Mutex::new(Some(sighting)),
            seat: Arc::default(),
            queue: Queue::default(),
            memory: Memory::default(),
            stuck: watch::Sender::new(false),
            changes,
            changed: Notify::new(),
        })
    }

    /// Its identity.
    pub const fn uuid(&self) -> &VgUuid {
        &self.uuid
    }

    /// What is kept of its room for growth.
    pub const fn reserve(&self) -> Bytes {
        self.reserve
    }

    /// How many callers wait for its turn at this moment.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Its name, when it was last seen.
    pub fn name(&self) -> Option<VgName> {
        self.sighted().as_ref().map(|sighting| sighting.vg.name.clone())
    }

    /// The devices that it lay on when it was last seen.
    pub fn devices(&self) -> Vec<PathBuf> {
        self.sighted().as_ref().map(|sighting| sighting.devices.clone()).unwrap_or_default()
    }

    /// Its state, when it was last seen.
    ///
    /// # Errors
    /// It is gone, or stuck.
    pub fn health(&self) -> Result<Health, GroupError> {
        let sighting = self.sighting()?;
        if self.is_stuck() { Err(self.stuck_error(&sighting.vg.name)) } else { Ok(sighting.health) }
    }

    /// Demands that it can be used in every way.
    ///
    /// # Errors
    /// It is gone, stuck, or unhealthy.
    pub fn healthy(&self) -> Result<(), GroupError> {
        match self.health()? {
            Health::Healthy => Ok(()),
            health => Err(GroupError::Unhealthy { vg: self.sighting()?.vg.name, health }),
        }
    }

    /// What it looked like when it could last be read, whatever became of it since.
    pub fn earlier_view(&self) -> Option<Arc<View>> {
        self.memory.view()
    }

    /// Whether it may hold an LV of that name, going by what was read and what was asked of LVM since, whatever
    /// became of it. `None` if it was never read.
    pub fn may_hold(&self, name: &LvName) -> Option<bool> {
        self.memory.may_hold(name)
    }

    fn sighted(&self) -> MutexGuard<'_, Option<Sighting>> {
        self.sighting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sighting(&self) -> Result<Sighting, GroupError> {
        self.sighted().clone().ok_or_else(|| GroupError::Unseen(self.uuid.clone()))
    }

    /// Takes note of what a look showed of this group.
    pub(super) fn note(&self, seen: Option<Sighting>) {
        let mut sighting = self.sighted();
        if *sighting != seen {
            report(&self.uuid, sighting.as_ref(), seen.as_ref());
            *sighting = seen;
            drop(sighting);
            self.changes.tell();
        }
    }

    /// Ends what runs LVM's commands, unless one runs. The next command starts it again.
    pub(super) fn rest(&self) {
        if let Ok(mut seat) = self.seat.try_lock() {
            seat.rest();
        }
    }

    /// Whether its disks hold nothing newer than what was read of them. While somebody has the turn it is
    /// so: a turn reads them itself, when it begins and after each of its changes.
    pub(super) async fn is_as_read(&self) -> bool {
        match (self.seat.try_lock(), self.serving()) {
            (Ok(seat), Ok(sighting)) => seat.still_true(self, &sighting).await.is_some(),
            (busy, _) => busy.is_err(),
        }
    }

    /// Looks at the whole machine, and takes note of this group.
    pub(super) async fn look(&self) -> Result<Sighting, GroupError> {
        let rows = self.backend.look().await.map_err(GroupError::Look)?;
        let seen = sightings(&rows, self.backend.system_id()).into_iter().find(|s| s.vg.uuid == self.uuid);
        self.note(seen);
        self.sighting()
    }

    /// What the group looks like now. While a change is under way: what it looked like before.
    ///
    /// # Errors
    /// It is gone, unusable or stuck, or cannot be read.
    pub async fn view(self: &Arc<Self>) -> Result<Arc<View>, GroupError> {
        let free = Arc::clone(&self.seat).try_lock_owned();
        match (free, self.earlier_view()) {
            (Ok(mut seat), _) => self.refresh(&mut seat).await,
            (Err(_), Some(view)) if !self.is_stuck() => self.serving().map(|_| view),
            (Err(_), _) => self.view_now().await,
        }
    }

    /// What the group looks like once no change of ours is under way. Others may have changed it since
    /// [`Group::view`] was read.
    ///
    /// # Errors
    /// Those of [`Group::view`].
    pub async fn view_now(self: &Arc<Self>) -> Result<Arc<View>, GroupError> {
        let mut seat = self.sit().await?;
        self.refresh(&mut seat).await
    }

    /// What the group looked like when it was last read, from memory.
    ///
    /// # Errors
    /// In words: it could not be read the last time, or has not been read yet.
    pub fn last_view(&self) -> Result<Arc<View>, String> {
        self.memory.last()
    }

    async fn refresh(self: &Arc<Self>, seat: &mut Seat) -> Result<Arc<View>, GroupError> {
        let read = seat.refresh(self).await;
        if self.memory.tried(read.as_ref().err().map(|error| chain(error))) {
            self.changes.tell();
        }
        read
    }

    /// Waits for the group's writer turn. It begins with a view that holds.
    ///
    /// # Errors
    /// The group is gone, stuck, cannot be read, or is in no state for what is intended.
    pub async fn turn(self: &Arc<Self>, intent: Intent) -> Result<Turn, GroupError> {
        let mut seat = self.sit().await?;
        self.refresh(&mut seat).await?;
        let sighting = self.serving()?;
        if intent == Intent::Change && sighting.health != Health::Healthy {
            return Err(GroupError::Unhealthy { vg: sighting.vg.name, health: sighting.health });
        }
        let mut turn = Turn::new(Arc::clone(self), seat);
        turn.settle_the_past().await?;
        Ok(turn)
    }

    /// Waits for the seat, but not behind a change that does not end.
    async fn sit(&self) -> Result<OwnedMutexGuard<Seat>, GroupError> {
        let name = self.sighting()?.vg.name;
        let _waiting = self.queue.enter();
        let mut stuck = self.stuck.subscribe();
        tokio::select! {
            biased;
            _ = stuck.wait_for(|stuck| *stuck) => Err(self.stuck_error(&name)),
            seat = Arc::clone(&self.seat).lock_owned() => Ok(seat),
        }
    }

    /// The group, if volumes of it can be used at all.
    pub(super) fn serving(&self) -> Result<Sighting, GroupError> {
        let sighting = self.sighting()?;
        if sighting.health.serves() {
            return Ok(sighting);
        }
        Err(GroupError::Unhealthy { vg: sighting.vg.name, health: sighting.health })
    }

    pub(super) fn publish(&self, view: &Arc<View>) {
        self.memory.keep(view);
        self.changes.tell();
    }

    fn is_stuck(&self) -> bool {
        *self.stuck.borrow()
    }

    fn stuck_error(&self, vg: &VgName) -> GroupError {
        GroupError::Stuck { vg: vg.clone(), patience: self.patience }
    }

    /// Waits for `work` to the end. When it takes longer than the group's patience the group is stuck
    /// until it ends.
    pub(super) async fn watch<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(self.patience, work.as_mut()).await {
            return done;
        }
        tracing::error!(vg = %self.uuid, what, patience = ?self.patience, "lvm does not answer: the group is stuck");
        self.stuck.send_replace(true);
        self.changes.tell();
        let done = work.await;
        self.stuck.send_replace(false);
        self.changes.tell();
        tracing::info!(vg = %self.uuid, what, "lvm answered at last: the group is well again");
        done
    }
}

/// Says once what changed about a group.
fn report(uuid: &VgUuid, before: Option<&Sighting>, now: Option<&Sighting>) {
    match (before, now) {
        (_, None) => tracing::warn!(vg = %uuid, "the volume group is gone"),
        // That volumes come and go is no news.
        (Some(before), Some(now)) if before.health == now.health && same_disks(before, now) => {}
        (Some(before), Some(now)) if before.health == now.health => {
            tracing::info!(vg = %uuid, name = %now.vg.name, devices = ?now.devices, "the volume group changed");
        }
        (_, Some(now)) if now.health == Health::Healthy => {
            tracing::info!(vg = %uuid, name = %now.vg.name, devices = ?now.devices, "the volume group is healthy");
        }
        (_, Some(now)) => {
            tracing::warn!(vg = %uuid, name = %now.vg.name, health = %now.health, "the volume group is unhealthy")
        }
    }
}
