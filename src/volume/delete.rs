use std::sync::Arc;

use super::VolumeError;
use super::found::{Found, tags_of};
use super::volumes::Volumes;
use crate::lvm::{GroupError, Intent, OPEN};
use crate::types::{VolumeId, VolumeState};

impl Volumes {
    /// Removes a volume. When this answers, LVM does not list it any more.
    ///
    /// # Errors
    /// It is in use, it is not ours, or its group takes no change; nothing but the traces of an expansion
    /// that never ended is removed then. Its group is not there ([`VolumeError::VgUnseen`]): nothing can be
    /// said of it.
    pub async fn delete(self: &Arc<Self>, id: &VolumeId) -> Result<(), VolumeError> {
        self.remove(id, |_| Ok(())).await
    }

    /// Removes a volume if it is as `wanted` says, which is asked again when nobody else can change it.
    pub(super) async fn remove(
        self: &Arc<Self>,
        id: &VolumeId,
        wanted: impl Fn(&Found) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let _busy = self.busy.take(&id.lv, "delete")?;
        let Some(found) = self.there(id).await? else { return Ok(()) };
        removable(&found)?;
        wanted(&found)?;
        self.in_use(&found).await?;
        self.preparations.end(&found.lv.uuid).await;
        let lock = self.locks.take(&found.lv.uuid).await?;
        let mut turn = found.group.turn(Intent::Change).await?;
        let Some(lv) = turn.view()?.lv(&id.lv).cloned() else {
            lock.remove_file();
            return Ok(());
        };
        if lv.uuid != found.lv.uuid {
            lock.remove_file();
            return Err(VolumeError::Busy { what: format!("a creation of {} by another driver", id.lv) });
        }
        let tags = tags_of(&lv, &found.vg_name, &id.lv)?;
        let found = Found { lv, tags, ..found };
        wanted(&found)?;
        alone(&found)?;
        // A suspended device keeps a file system open that nothing mounts any more.
        if self.active(&found).await?.is_some_and(|device| device.suspended) {
            turn.refresh(&id.lv).await?;
        }
        self.in_use(&found).await?;
        self.remove_growth(&mut turn, &found).await?;
        turn.remove(&id.lv).await.map_err(|error| unremoved(&found, error))?;
        drop(turn);
        lock.remove_file();
        tracing::info!(size = %found.lv.size, "removed");
        Ok(())
    }

    /// The volume; `None` where it is gone. That nobody knows of it is not enough: another driver may have made it since
    /// its group was read.
    async fn there(&self, id: &VolumeId) -> Result<Option<Found>, VolumeError> {
        let found = match self.find(id).await {
            Err(VolumeError::NotFound(_)) => self.find_now(id).await,
            found => found,
        };
        match found {
            Err(VolumeError::NotFound(_)) => Ok(None),
            found => found.map(Some),
        }
    }
}

/// Whether a volume in that state can be removed by this release.
fn removable(found: &Found) -> Result<(), VolumeError> {
    match found.tags.state {
        VolumeState::Blank | VolumeState::Fresh | VolumeState::Used => Ok(()),
        state @ (VolumeState::Copying | VolumeState::Condemned | VolumeState::Growing) => {
            let reason = "a newer release of Quarry is at work on it".to_owned();
            Err(VolumeError::State { id: found.id.clone(), state, reason })
        }
    }
}

/// Whether nothing depends on the volume: LVM would remove its snapshots along with it, and they are
/// somebody's.
fn alone(found: &Found) -> Result<(), VolumeError> {
    if !found.lv.origin {
        return Ok(());
    }
    let by = "an LVM snapshot of it exists that Quarry did not make (see lvs): remove that first".to_owned();
    Err(VolumeError::InUse { id: found.id.clone(), by })
}

fn unremoved(found: &Found, error: GroupError) -> VolumeError {
    match error {
        GroupError::Open { .. } => VolumeError::InUse { id: found.id.clone(), by: OPEN.to_owned() },
        other => VolumeError::Group(other),
    }
}
