use std::sync::Arc;
use std::time::Duration;

use super::found::{Found, known, volume_in};
use super::volumes::Volumes;
use super::{VolumeError, VolumeInfo};
use crate::lvm::{Group, LvRow, View};
use crate::types::{ClusterId, CsiName, LvName, LvUuid, VolumeId, VolumeState, VolumeTags};

/// What makes a volume one that was never used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Its identity: another volume of the same name has another.
    pub uuid: LvUuid,
    /// The cluster that it was made for.
    pub cluster: ClusterId,
    /// How old it is at least.
    pub age: Duration,
}

/// A volume that was never used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedVolume {
    /// The volume.
    pub info: VolumeInfo,
    /// Its identity.
    pub uuid: LvUuid,
    /// What is known of it.
    pub tags: VolumeTags,
    /// Its age.
    pub age: Duration,
}

impl Volumes {
    /// The volumes that were made by that name, in all groups that can be read: there should be one at most.
    ///
    /// # Errors
    /// There are groups, and none of them can be read.
    pub async fn named(&self, name: &CsiName) -> Result<Vec<VolumeInfo>, VolumeError> {
        let lv = LvName::for_volume(name);
        let mut found = Vec::new();
        for (group, view) in self.readable().await? {
            // One that cannot be understood is in the way of that name, but is nobody's volume.
            if let Ok(Some((row, tags))) = volume_in(&view, &lv)
                && tags.name == *name
            {
                let id = VolumeId { vg: group.uuid().clone(), lv: lv.clone() };
                found.push(VolumeInfo { id, size: row.size, mode: tags.mode });
            }
        }
        Ok(found)
    }

    /// The volumes of at least that age that were never staged, in all groups that can be read.
    ///
    /// # Errors
    /// There are groups, and none of them can be read.
    pub async fn unused(&self, age: Duration) -> Result<Vec<UnusedVolume>, VolumeError> {
        let mut unused = Vec::new();
        for (group, view) in self.readable().await? {
            unused.extend(
                view.lvs().filter_map(|lv| never_used(&group, &view, lv)).filter(|volume| volume.age >= age),
            );
        }
        Ok(unused)
    }

    /// Removes a volume, if it is that one and was never used.
    ///
    /// # Errors
    /// It is another one or was used; and as with [`Volumes::delete`].
    pub async fn remove_unused(self: &Arc<Self>, id: &VolumeId, unused: &Unused) -> Result<(), VolumeError> {
        self.remove(id, |found| unused.is(found)).await
    }

    async fn readable(&self) -> Result<Vec<(Arc<Group>, Arc<View>)>, VolumeError> {
        let (mut readable, mut failure) = (Vec::new(), None);
        for group in self.groups.all().into_iter().filter(|group| group.name().is_some()) {
            match group.view().await {
                Ok(view) => readable.push((group, view)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if readable.is_empty() => Err(error.into()),
            _ => Ok(readable),
        }
    }
}

fn never_used(group: &Group, view: &View, lv: &LvRow) -> Option<UnusedVolume> {
    let (info, tags) = known(group, view, lv)?;
    if !is_virgin(tags.state) {
        return None;
    }
    Some(UnusedVolume { info, uuid: lv.uuid.clone(), age: lv.age()?, tags })
}

/// Whether a volume in that state was never staged.
const fn is_virgin(state: VolumeState) -> bool {
    matches!(state, VolumeState::Blank | VolumeState::Fresh)
}

impl Unused {
    fn is(&self, found: &Found) -> Result<(), VolumeError> {
        let reason = match found.lv.age() {
            _ if found.lv.uuid != self.uuid => "it is another volume of that name",
            _ if !is_virgin(found.tags.state) => "it was used",
            _ if found.tags.cluster.as_ref() != Some(&self.cluster) => "it was made for another cluster",
            Some(age) if age >= self.age => return Ok(()),
            _ => "it is too young",
        };
        let reason = format!("{reason}, so it is not removed as unused");
        Err(VolumeError::State { id: found.id.clone(), state: found.tags.state, reason })
    }
}
