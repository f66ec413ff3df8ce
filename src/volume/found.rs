use std::sync::Arc;

use super::volumes::Volumes;
use super::{VolumeError, VolumeInfo};
use crate::lvm::{Group, GroupError, LvRow, View};
use crate::types::{LvName, Owner, VgName, VolumeId, VolumeTags};

/// A volume of ours, as its group showed it.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) id: VolumeId,
    pub(super) group: Arc<Group>,
    pub(super) vg_name: VgName,
    pub(super) lv: LvRow,
    pub(super) tags: VolumeTags,
}

impl Volumes {
    /// The volume, as its tags tell.
    ///
    /// # Errors
    /// It is not there, not ours, or its group cannot be read.
    pub async fn get(&self, id: &VolumeId) -> Result<VolumeInfo, VolumeError> {
        let found = self.find(id).await?;
        Ok(VolumeInfo { id: found.id, size: found.lv.size, mode: found.tags.mode })
    }

    /// The volume, from its group's present view: while a change is under way, from the one before.
    ///
    /// # Errors
    /// Its group is not there or cannot be read; it is seen whole and the volume is not in it; or the
    /// LV is not ours.
    pub(super) async fn find(&self, id: &VolumeId) -> Result<Found, VolumeError> {
        let group = self.group(id).await?;
        let view = group.view().await.map_err(|error| self.unseen(error))?;
        found_in(&view, group, id)
    }

    /// The volume, from a view that is of no earlier moment than this call. It waits for a change that is under way.
    ///
    /// # Errors
    /// Those of [`Self::find`].
    pub(super) async fn find_now(&self, id: &VolumeId) -> Result<Found, VolumeError> {
        let group = self.group(id).await?;
        let view = group.view_now().await.map_err(|error| self.unseen(error))?;
        found_in(&view, group, id)
    }

    /// The group that the volume lies in.
    pub(super) async fn group(&self, id: &VolumeId) -> Result<Arc<Group>, VolumeError> {
        self.groups.find(&id.vg).await.map_err(|error| self.unseen(error))
    }

    /// Tells of a group that is not here which are.
    fn unseen(&self, error: GroupError) -> VolumeError {
        match error {
            GroupError::Unseen(vg) => {
                let groups = self.groups.all().into_iter();
                let here = groups.filter_map(|group| Some((group.name()?, group.uuid().clone()))).collect();
                VolumeError::VgUnseen { vg, here }
            }
            other => VolumeError::Group(other),
        }
    }
}

fn found_in(view: &View, group: Arc<Group>, id: &VolumeId) -> Result<Found, VolumeError> {
    let (lv, tags) = volume_in(view, &id.lv)?.ok_or(()).or_else(|()| absent(&group, id))?;
    whole(&group, id, &lv)?;
    Ok(Found { id: id.clone(), group, vg_name: view.vg.name.clone(), lv, tags })
}

/// An LV that a group does not list is gone only if the group is seen whole, and as it is now: where a
/// disk is there twice, LVM may have read the older of the two.
pub(super) fn absent<T>(group: &Group, id: &VolumeId) -> Result<T, VolumeError> {
    group.healthy()?;
    Err(VolumeError::NotFound(id.clone()))
}

/// Demands that all disks are there that the LV lies on.
fn whole(group: &Group, id: &VolumeId, lv: &LvRow) -> Result<(), VolumeError> {
    if !lv.partial {
        return Ok(());
    }
    group.healthy().map_err(|why| VolumeError::Incomplete { id: id.clone(), why: Box::new(why) })?;
    let what = format!("LVM says that a disk of volume {id} is missing, and that none of its group is");
    Err(VolumeError::host(what, "look at pvs and lvs on the node"))
}

/// The volume of that name in the view; `None` where there is no such LV.
///
/// # Errors
/// There is one, and it is somebody else's, or its tags cannot be understood.
pub(super) fn volume_in(view: &View, name: &LvName) -> Result<Option<(LvRow, VolumeTags)>, VolumeError> {
    let Some(lv) = view.lv(name) else { return Ok(None) };
    if let Some(fault) = &lv.fault {
        let reason = format!("LVM reports it in a way that makes no sense: {fault}");
        return Err(VolumeError::Unreadable { vg: view.vg.name.clone(), lv: name.clone(), reason });
    }
    Ok(Some((lv.clone(), tags_of(lv, &view.vg.name, name)?)))
}

/// What the LV is as a volume, and its tags; `None` where it is none of ours that can be understood.
pub(super) fn known(group: &Group, view: &View, lv: &LvRow) -> Option<(VolumeInfo, VolumeTags)> {
    let name: LvName = lv.name.parse().ok()?;
    let tags = tags_of(lv, &view.vg.name, &name).ok()?;
    let id = VolumeId { vg: group.uuid().clone(), lv: name };
    Some((VolumeInfo { id, size: lv.size, mode: tags.mode }, tags))
}

/// The tags of a volume.
///
/// # Errors
/// It is somebody else's, or its tags cannot be understood.
pub(super) fn tags_of(lv: &LvRow, vg: &VgName, name: &LvName) -> Result<VolumeTags, VolumeError> {
    match lv.owner() {
        Ok(Owner::Volume(tags)) => Ok(tags),
        Ok(Owner::Growth(_) | Owner::Foreign) => {
            Err(VolumeError::NotOurs { vg: vg.clone(), lv: name.clone() })
        }
        Err(error) => {
            Err(VolumeError::Unreadable { vg: vg.clone(), lv: name.clone(), reason: error.to_string() })
        }
    }
}
