use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fleet::{Fleet, Owner};
use crate::cluster::{Events, Notice, Subject};
use crate::types::{VgUuid, VolumeId};

/// The groups that an administrator has declared lost: what was in them counts as deleted. A group that is
/// seen again is lost no more, for as long as this controller runs.
#[derive(Debug, Default)]
pub struct Lost {
    declared: HashSet<VgUuid>,
    returned: Mutex<HashSet<VgUuid>>,
}

impl Lost {
    /// These are declared lost.
    pub fn new(declared: impl IntoIterator<Item = VgUuid>) -> Self {
        Self { declared: declared.into_iter().collect(), returned: Mutex::default() }
    }

    fn returned(&self) -> MutexGuard<'_, HashSet<VgUuid>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of declared groups that are there. To be called after every change of the fleet.
    pub(super) fn look(&self, fleet: &Fleet) {
        for vg in &self.declared {
            let seen = !matches!(fleet.owner(vg), Owner::Nobody);
            if seen && self.returned().insert(vg.clone()) {
                tracing::warn!(%vg, "a volume group that was declared lost is there: take it off the list");
            }
        }
    }

    /// Whether the group is lost. A controller that is new cannot say so: its node may yet come.
    pub(super) fn holds(&self, fleet: &Fleet, vg: &VgUuid) -> bool {
        self.declared.contains(vg)
            && !fleet.is_new()
            && matches!(fleet.owner(vg), Owner::Nobody)
            && !self.returned().contains(vg)
    }
}

/// What is told of a volume whose deletion was answered without anything being deleted.
pub(super) fn given_up(events: &Events, id: &VolumeId) {
    tracing::warn!(volume = %id, "its volume group is declared lost: it counts as deleted");
    events.tell(Notice {
        // Kubernetes' PersistentVolume has the name that the volume was made by.
        subject: Subject::Volume(id.lv.to_string()),
        warning: true,
        reason: "VolumeGroupLost",
        action: "Delete",
        note: format!(
            "volume group {} is declared lost: volume {id} counts as deleted, and nothing was deleted",
            id.vg
        ),
    });
}
