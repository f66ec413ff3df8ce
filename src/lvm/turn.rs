use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::group::Group;
use super::seat::Seat;
use super::{Command, EngineError, GroupError, LvRow, Reply, View};
use crate::types::{Extents, LvName, Owner, PeRange};

/// How often a device that is open is looked at before that is believed, and how long after one another: udev
/// opens a device for a moment after somebody who wrote to it has closed it.
const OPEN_LOOKS: u32 = 20;
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// The only writer's turn in a volume group. It ends when it is dropped.
///
/// Each method leaves the group as asked, whatever it was before, or fails; what LVM's exit code says
/// counts for nothing beside what the group looks like afterwards. When a method answers, the change
/// would survive a power cut.
pub struct Turn {
    group: Arc<Group>,
    seat: OwnedMutexGuard<Seat>,
    view: Option<Arc<View>>,
}

impl Turn {
    pub(super) fn new(group: Arc<Group>, seat: OwnedMutexGuard<Seat>) -> Self {
        let view = seat.view().cloned();
        Self { group, seat, view }
    }

    /// The group.
    pub const fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// What the group looks like now.
    ///
    /// # Errors
    /// It could not be read after the last change.
    pub fn view(&self) -> Result<&Arc<View>, GroupError> {
        self.view.as_ref().ok_or_else(|| GroupError::Unseen(self.group.uuid().clone()))
    }

    /// Makes good what a killed predecessor left: commits that were never flushed, and LVs of ours that
    /// it left suspended, on which all I/O waits. LVM's lock keeps this from touching what a command
    /// that still runs has suspended.
    pub(super) async fn settle_the_past(&mut self) -> Result<(), GroupError> {
        self.flush().await?;
        self.resume().await
    }

    async fn resume(&mut self) -> Result<(), GroupError> {
        let ours = |lv: &&LvRow| !matches!(lv.owner(), Ok(Owner::Foreign));
        let stuck = self.view()?.lvs().filter(|lv| lv.suspended).filter(ours);
        let names: Vec<LvName> = stuck.filter_map(|lv| lv.name.parse().ok()).collect();
        for name in names {
            tracing::warn!(vg = %self.group.uuid(), lv = %name, "resuming a volume that was left suspended");
            self.refresh(&name).await?;
        }
        Ok(())
    }

    /// Makes good at once what an lvm that died in this turn left: its caller may not come again for
    /// minutes, and all that time the volume's users would stand still.
    async fn settle(&mut self, said: &Said) -> Result<(), GroupError> {
        match said {
            Said::Words(_) => Ok(()),
            Said::Nothing(_) => self.resume().await,
        }
    }

    /// The LV's row as it is this moment: whether it is open or suspended is in no metadata.
    ///
    /// # Errors
    /// The group cannot be read.
    pub async fn now(&mut self, name: &LvName) -> Result<Option<LvRow>, GroupError> {
        if self.view()?.lv(name).is_none() {
            return Ok(None);
        }
        self.amend(name, 0, &Command::Volume(name.clone())).await?;
        Ok(self.view()?.lv(name).cloned())
    }

    /// Where the LV's extents lie, first to last.
    ///
    /// # Errors
    /// The group cannot be read, or the LV is not linear.
    pub async fn ranges(&mut self, name: &LvName) -> Result<Vec<PeRange>, GroupError> {
        let command = Command::Segments(name.clone());
        let reply = self.run(&command).await?;
        if !reply.success || reply.segments.iter().any(|segment| segment.kind != "linear") {
            return Err(self.refused(&command, reply.messages));
        }
        Ok(reply.segments.into_iter().flat_map(|segment| segment.ranges).collect())
    }

    /// Makes a linear LV with these tags.
    ///
    /// # Errors
    /// LVM did not make it; it is not there then.
    pub async fn create(
        &mut self,
        name: &LvName,
        extents: Extents,
        tags: Vec<String>,
    ) -> Result<LvRow, GroupError> {
        let size = self.view()?.vg.extent_size.size_of(extents);
        let made = |lv: &LvRow| lv.size == size && tags.iter().all(|tag| lv.tags.contains(tag));
        let command = Command::Create { name: name.clone(), extents, tags: tags.clone() };
        self.group.memory.sends(name);
        self.change(name, &command, made).await
    }

    /// Makes the LV as large as `to` at least, with the extents in `from` where it names any.
    ///
    /// # Errors
    /// LVM did not do it; the LV has its old size then.
    pub async fn extend(
        &mut self,
        name: &LvName,
        to: Extents,
        from: Vec<PeRange>,
    ) -> Result<LvRow, GroupError> {
        let wanted = self.view()?.vg.extent_size.size_of(to);
        let command = Command::Extend { name: name.clone(), to, from };
        self.change(name, &command, |lv| lv.size >= wanted).await
    }

    /// Exchanges one tag for another.
    ///
    /// # Errors
    /// LVM did not do it; the LV has its old tag then.
    pub async fn retag(&mut self, name: &LvName, remove: String, add: String) -> Result<LvRow, GroupError> {
        let done = |lv: &LvRow| lv.tags.contains(&add) && !lv.tags.contains(&remove);
        let command = Command::Retag { name: name.clone(), remove: remove.clone(), add: add.clone() };
        self.change(name, &command, done).await
    }

    /// Makes the LV's device, if it has none.
    ///
    /// # Errors
    /// LVM could not activate it.
    pub async fn activate(&mut self, name: &LvName) -> Result<LvRow, GroupError> {
        self.change(name, &Command::Activate(name.clone()), |lv| lv.active && !lv.suspended).await
    }

    /// Loads the LV's table anew and resumes it, if it was left suspended.
    ///
    /// # Errors
    /// LVM could not resume it: its users still wait.
    pub async fn refresh(&mut self, name: &LvName) -> Result<LvRow, GroupError> {
        let command = Command::Refresh(name.clone());
        let said = self.try_change(name, &command).await?;
        self.judge(name, &command, said, |lv| !lv.suspended).await
    }

    /// Removes the LV. When this answers, LVM does not list it any more. LVM refuses while its device is
    /// open; that is given a moment to end.
    ///
    /// # Errors
    /// [`GroupError::Open`]: it stays open. Or LVM did not remove it.
    pub async fn remove(&mut self, name: &LvName) -> Result<(), GroupError> {
        let meant = self.view()?.lv(name).map(|lv| (lv.uuid.clone(), lv.origin));
        let refused = match self.try_remove(name).await {
            Err(refused @ GroupError::Refused { .. }) => refused,
            done => return done,
        };
        if !self.closes(name).await? {
            return Err(GroupError::Open { vg: self.view()?.vg.name.clone(), lv: name.clone() });
        }
        // While that was waited for, others may have changed it: a snapshot would be removed with it.
        let Some(now) = self.view()?.lv(name).map(|lv| (lv.uuid.clone(), lv.origin)) else { return Ok(()) };
        if Some(now) == meant { self.try_remove(name).await } else { Err(refused) }
    }

    /// Whether the LV's device is closed, or closes in a moment.
    ///
    /// # Errors
    /// The group cannot be read.
    pub async fn closes(&mut self, name: &LvName) -> Result<bool, GroupError> {
        for _ in 0..OPEN_LOOKS {
            if !self.now(name).await?.is_some_and(|lv| lv.open) {
                return Ok(true);
            }
            tokio::time::sleep(OPEN_PAUSE).await;
        }
        Ok(false)
    }

    async fn try_remove(&mut self, name: &LvName) -> Result<(), GroupError> {
        let command = Command::Remove(name.clone());
        let said = self.attempt(&command).await?;
        self.amend(name, command.commits(), &Command::Group).await?;
        self.settle(&said).await?;
        if self.view()?.lv(name).is_some() {
            return Err(self.undone(&command, said));
        }
        self.flush().await
    }

    /// Runs a change on one LV, and judges it by the LV's row afterwards.
    async fn change(
        &mut self,
        name: &LvName,
        command: &Command,
        done: impl Fn(&LvRow) -> bool,
    ) -> Result<LvRow, GroupError> {
        let said = self.try_change(name, command).await?;
        self.settle(&said).await?;
        self.judge(name, command, said, done).await
    }

    /// Sends a change of one LV, and looks at the LV's row afterwards.
    async fn try_change(&mut self, name: &LvName, command: &Command) -> Result<Said, GroupError> {
        let said = self.attempt(command).await?;
        self.amend(name, command.commits(), &Command::Volume(name.clone())).await?;
        Ok(said)
    }

    async fn judge(
        &mut self,
        name: &LvName,
        command: &Command,
        said: Said,
        done: impl Fn(&LvRow) -> bool,
    ) -> Result<LvRow, GroupError> {
        let Some(row) = self.view()?.lv(name).filter(|row| done(row)).cloned() else {
            return Err(self.undone(command, said));
        };
        self.flush().await?;
        Ok(row)
    }

    /// Sends a change. What LVM says against it is kept for the message; whether it is done is seen
    /// by looking. So it is, too, when LVM ended before it answered.
    async fn attempt(&mut self, command: &Command) -> Result<Said, GroupError> {
        self.seat.unflushed |= command.commits() > 0;
        match self.seat.run(&self.group, command).await {
            Ok(reply) => Ok(Said::Words(reply.messages)),
            Err(lost @ EngineError::Lost { .. }) => Ok(Said::Nothing(lost)),
            Err(source) => Err(self.failed(source)),
        }
    }

    async fn amend(&mut self, name: &LvName, commits: u64, report: &Command) -> Result<(), GroupError> {
        self.view = None;
        let view = self.seat.amend(&self.group, name.as_str(), commits, report).await?;
        self.view = Some(view);
        Ok(())
    }

    async fn run(&mut self, command: &Command) -> Result<Reply, GroupError> {
        let reply = self.seat.run(&self.group, command).await;
        reply.map_err(|source| self.failed(source))
    }

    async fn flush(&mut self) -> Result<(), GroupError> {
        if !self.seat.unflushed {
            return Ok(());
        }
        let devices = self.group.devices();
        let flushed = self.group.watch("flush", self.group.backend.flush(&devices)).await;
        flushed.map_err(|source| self.failed(source))?;
        self.seat.unflushed = false;
        self.group.changed.notify_one();
        Ok(())
    }

    fn failed(&self, source: EngineError) -> GroupError {
        match self.group.name() {
            Some(vg) => GroupError::Engine { vg, source },
            None => GroupError::Unseen(self.group.uuid().clone()),
        }
    }

    /// Tells a refusal, which the same change would meet again, from an end that says nothing of it.
    fn undone(&self, command: &Command, said: Said) -> GroupError {
        match said {
            Said::Words(messages) => self.refused(command, messages),
            Said::Nothing(source) => self.failed(source),
        }
    }

    /// LVM did not do it. Where the group has become unhealthy in the meantime, that is why.
    fn refused(&self, command: &Command, messages: Vec<String>) -> GroupError {
        match (self.group.name(), self.group.healthy()) {
            (None, _) => GroupError::Unseen(self.group.uuid().clone()),
            (Some(_), Err(unhealthy @ GroupError::Unhealthy { .. })) => {
                tracing::warn!(vg = %self.group.uuid(), %command, ?messages, "lvm refused a change");
                unhealthy
            }
            (Some(vg), _) => GroupError::Refused { vg, what: command.to_string(), messages },
        }
    }
}

/// What came back for a change.
enum Said {
    /// Words, of which none are needed.
    Words(Vec<String>),
    /// Nothing: LVM ended first.
    Nothing(EngineError),
}
