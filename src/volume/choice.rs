//! Which group a new volume belongs in.

use std::sync::Arc;

use super::VolumeError;
use crate::lvm::{EngineError, Group, GroupError, View};
use crate::types::{Bytes, LvName};

/// The group that holds an LV of that name.
pub(super) async fn holder(groups: &[Arc<Group>], name: &LvName) -> Result<Option<Arc<Group>>, VolumeError> {
    for group in groups {
        match group.view().await {
            Ok(view) if view.lv(name).is_some() => return Ok(Some(Arc::clone(group))),
            Ok(_) => {}
            Err(error) => {
                let held = group.may_hold(name);
                if held == Some(true) {
                    return Err(error.into());
                }
                if !is_still_true(&error, held.is_some()) {
                    // Where there is one group only its capacity is nothing now, as a refusal promises.
                    return Err(if groups.len() == 1 { nothing_started(error) } else { error.into() });
                }
            }
        }
    }
    Ok(None)
}

/// Whether a group that cannot be read for that reason holds what it held when it was read, or nothing of
/// ours if it never was. A call that still runs has its name to itself, so what hangs makes something else.
const fn is_still_true(error: &GroupError, was_read: bool) -> bool {
    match error {
        GroupError::Unhealthy { .. } | GroupError::Unseen(_) => true,
        // A disk, or lvm on it, does not answer.
        GroupError::Stuck { .. }
        | GroupError::Look(_)
        | GroupError::Engine { source: EngineError::Disk { .. } | EngineError::Exec(_), .. } => was_read,
        GroupError::Refused { .. } | GroupError::Open { .. } | GroupError::Engine { .. } => false,
    }
}

/// The group in which creation may use the most bytes, and how many those are. A group that somebody is changing
/// counts as it was before.
pub(super) async fn roomiest(groups: &[Arc<Group>]) -> Result<(Bytes, Arc<Group>), VolumeError> {
    let mut best: Option<(Bytes, Arc<Group>)> = None;
    let mut reason = VolumeError::NoPlace("there is no volume group".to_owned());
    for group in groups {
        match usable(group).await {
            Ok(room) if best.as_ref().is_none_or(|(most, _)| room > *most) => {
                best = Some((room, Arc::clone(group)));
            }
            Ok(_) => {}
            Err(error) => reason = error,
        }
    }
    best.ok_or(reason)
}

async fn usable(group: &Arc<Group>) -> Result<Bytes, VolumeError> {
    let view = group.view().await.map_err(nothing_started)?;
    group.healthy().map_err(nothing_started)?;
    // One that could not be read, and that somebody tries to read again just now, is the last to wait for.
    Ok(if group.last_view().is_ok() { usable_of(group, &view) } else { Bytes::ZERO })
}

pub(super) fn usable_of(group: &Group, view: &View) -> Bytes {
    view.vg.extent_size.size_of(view.room(group.reserve()).usable)
}

/// A group that cannot be used, before anything was asked of it: another node may do better.
pub(super) const fn nothing_started(error: GroupError) -> VolumeError {
    VolumeError::Unusable(error)
}
