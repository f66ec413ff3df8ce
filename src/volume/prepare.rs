use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::VolumeError;
use super::found::{Found, volume_in};
use super::lock::VolumeLock;
use super::preparations::{Duty, Preparation};
use super::volumes::Volumes;
use crate::device::{Access, Pinned, Zeroed, zero};
use crate::fs::{self, Check, Content};
use crate::lvm::{Intent, OPEN};
use crate::types::{FsType, FsUuid, VolumeId, VolumeMode, VolumeState, chain, state_change};

/// After this long a blank volume that holds recognised content is left to a person.
const CONTENT_AGE: Duration = Duration::from_secs(60 * 60);

/// After this long a blank volume is left to a person, whatever it holds: its tags may have come back
/// with an old backup of the metadata, and what it holds may be somebody's.
pub const BLANK_AGE: Duration = Duration::from_secs(24 * 60 * 60);

impl Volumes {
    /// Begins to prepare a blank volume, or joins the preparation that is under way.
    pub(super) fn prepare(self: &Arc<Self>, found: &Found) -> Preparation {
        let (preparation, duty) = self.preparations.join(&found.lv.uuid, &self.stop);
        if let Some(duty) = duty {
            let (volumes, found) = (Arc::clone(self), found.clone());
            self.tracker.spawn(async move {
                let outcome = volumes.prepare_under_lock(&found, &duty).await;
                if let Err(error) = &outcome {
                    report(&found.id, error);
                }
                volumes.preparations.done(duty, outcome);
            });
        }
        preparation
    }

    /// Prepares the volume if, with its lock held, it is still blank.
    async fn prepare_under_lock(&self, found: &Found, duty: &Duty) -> Result<(), VolumeError> {
        let stop = duty.stop();
        let lock = stop.run_until_cancelled(self.locks.take(&found.lv.uuid)).await;
        let lock = lock.ok_or_else(|| self.ended(found))??;
        let (lock, blank) = lock.on(self.still_blank(found).await)?;
        let Some(found) = blank else { return Ok(()) };
        let access = self.access(&found).await?;
        let device = self.device(&found).await?;
        let pinned = self.pin(&found, &device, access).await?;
        match found.tags.mode {
            VolumeMode::Filesystem(fs) => self.make_file_system(&found, fs, &pinned, &lock).await?,
            VolumeMode::Block => self.zero_volume(&found, &pinned, &lock, stop).await?,
        }
        pinned.flush().await.map_err(|error| failed(&found, "flushed", error))?;
        drop(pinned);
        // One change instead of two, where a user's data may come next.
        let state = if duty.is_for_use() { VolumeState::Used } else { VolumeState::Fresh };
        self.move_on(&found, VolumeState::Blank, state).await?;
        tracing::info!(volume_id = %found.id, mode = %found.tags.mode, "prepared");
        Ok(())
    }

    /// The volume as it is this moment, if it is still there and blank.
    async fn still_blank(&self, found: &Found) -> Result<Option<Found>, VolumeError> {
        let turn = found.group.turn(Intent::Change).await?;
        let now = volume_in(turn.view()?, &found.id.lv)?.filter(|(lv, _)| lv.uuid == found.lv.uuid);
        let (lv, tags) = now.ok_or_else(|| VolumeError::NotFound(found.id.clone()))?;
        let blank = tags.state == VolumeState::Blank;
        Ok(blank.then(|| Found { lv, tags, ..found.clone() }))
    }

    /// How the volume is opened to be prepared. One that is to be zeroed must be free: it may be called blank by an
    /// old backup of the metadata while a pod writes to it. The programs that make file systems look themselves.
    ///
    /// # Errors
    /// It is in use.
    async fn access(&self, found: &Found) -> Result<Access, VolumeError> {
        if found.tags.mode != VolumeMode::Block {
            return Ok(Access::Write);
        }
        self.in_use(found).await?;
        if found.group.turn(Intent::Device).await?.closes(&found.id.lv).await? {
            return Ok(Access::Exclusive);
        }
        Err(VolumeError::InUse { id: found.id.clone(), by: OPEN.to_owned() })
    }

    async fn make_file_system(
        &self,
        found: &Found,
        fs: FsType,
        device: &Pinned,
        lock: &VolumeLock,
    ) -> Result<(), VolumeError> {
        let (programs, path) = (self.programs.as_ref(), device.path());
        let content = self.content(found, device).await?;
        let uuid = FsUuid::on(&found.lv.uuid);
        if finished(&content, fs, uuid) {
            let check = fs::of(fs).check(programs, &path).await;
            if let Check::Clean = check.map_err(|error| failed(found, "checked", error))? {
                return Ok(());
            }
        }
        writable(found, &content)?;
        let made = fs::of(fs).make(programs, &path, uuid, &found.tags.make, lock.share()?).await;
        made.map_err(|error| failed(found, "formatted", error))
    }

    async fn zero_volume(
        &self,
        found: &Found,
        device: &Pinned,
        lock: &VolumeLock,
        stop: &CancellationToken,
    ) -> Result<(), VolumeError> {
        writable(found, &self.content(found, device).await?)?;
        // The only preparation that takes long: whoever waits for it finds out here why.
        tracing::info!(volume_id = %found.id, size = %found.lv.size, "zeroing");
        let zeroed = zero(device, 0..found.lv.size.get(), Some(lock.share()?), stop.clone()).await;
        match zeroed.map_err(|error| failed(found, "zeroed", error))? {
            Zeroed::Done => Ok(()),
            Zeroed::Stopped { .. } => Err(self.ended(found)),
        }
    }

    /// Why a preparation was told to stop.
    fn ended(&self, found: &Found) -> VolumeError {
        if self.stop.is_cancelled() {
            VolumeError::ShuttingDown
        } else {
            VolumeError::Deleting(found.id.clone())
        }
    }

    async fn content(&self, found: &Found, device: &Pinned) -> Result<Content, VolumeError> {
        let content = fs::probe(self.programs.as_ref(), &device.path()).await;
        content.map_err(|error| failed(found, "probed", error))
    }

    /// Changes a volume's state, if it is still what it was. One that is in the new state is left so.
    ///
    /// # Errors
    /// The volume is in neither of the two states, or the group takes no change.
    pub(super) async fn move_on(
        &self,
        found: &Found,
        from: VolumeState,
        to: VolumeState,
    ) -> Result<(), VolumeError> {
        let mut turn = found.group.turn(Intent::Change).await?;
        let now = volume_in(turn.view()?, &found.id.lv)?.filter(|(lv, _)| lv.uuid == found.lv.uuid);
        let Some((_, tags)) = now else { return Err(VolumeError::NotFound(found.id.clone())) };
        if tags.state == to {
            return Ok(());
        }
        if tags.state != from {
            let reason = format!("it was {from} a moment ago: something else works on it");
            return Err(VolumeError::State { id: found.id.clone(), state: tags.state, reason });
        }
        let (remove, add) = state_change(from, to);
        turn.retag(&found.id.lv, remove, add).await?;
        Ok(())
    }
}

/// Says that a preparation came to nothing: to a person only where something is wrong.
fn report(id: &VolumeId, error: &VolumeError) {
    let why = chain(error);
    if error.is_an_end() {
        tracing::info!(volume_id = %id, why, "the preparation was ended");
    } else {
        tracing::warn!(volume_id = %id, error = why, "the volume could not be prepared");
    }
}

fn failed(found: &Found, what: &str, error: impl std::error::Error + Send + Sync + 'static) -> VolumeError {
    VolumeError::host(format!("volume {} cannot be {what}", found.id), error)
}

/// A file system of ours that needs only its tag.
fn finished(content: &Content, fs: FsType, uuid: FsUuid) -> bool {
    *content == Content::FileSystem { fs_type: fs, uuid }
}

pub(super) fn too_old(found: &Found) -> bool {
    found.lv.age().is_none_or(|age| age > BLANK_AGE)
}

/// Whether a blank volume may be written to: by its age, and by what it holds.
fn writable(found: &Found, content: &Content) -> Result<(), VolumeError> {
    let age = found.lv.age();
    let holds = match content {
        Content::Empty => None,
        Content::Unrecognised => Some("bytes that nothing recognises".to_owned()),
        Content::FileSystem { fs_type, uuid } => {
            Some(format!("a {fs_type} file system with the UUID {uuid}"))
        }
        Content::Other(words) => Some(words.clone()),
        Content::Ambivalent => Some("marks of several things at once".to_owned()),
    };
    let recognised = !matches!(content, Content::Empty | Content::Unrecognised);
    let somebodys = recognised && age.is_none_or(|age| age > CONTENT_AGE);
    if !somebodys && !too_old(found) {
        return Ok(());
    }
    let since = age
        .map_or_else(|| "at an unknown time".to_owned(), |age| format!("{} hours ago", age.as_secs() / 3600));
    let holds = holds.unwrap_or_else(|| "nothing that is recognised".to_owned());
    let found_there = format!(
        "it was made {since}, was never prepared, and holds {holds}, which may be somebody's: if nobody misses it, delete the claim"
    );
    Err(VolumeError::Content { id: found.id.clone(), found: found_there })
}
