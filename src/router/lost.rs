use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fleet::{Fleet, Owner};
use crate::cluster::{ClusterError, Events, LostGroups, Notice, Subject};
use crate::types::{VgUuid, VolumeId, chain};

/// The groups that an administrator has declared lost: what was in them counts as deleted. One that is seen again
/// is lost no more, and comes off the list.
pub struct Lost {
    list: LostGroups,
    /// Those that were seen again and are on the list still, with what the list says of them.
    returned: Mutex<BTreeMap<VgUuid, String>>,
}

impl Lost {
    /// Those on the list are declared lost.
    pub fn new(list: LostGroups) -> Self {
        Self { list, returned: Mutex::default() }
    }

    fn returned(&self) -> MutexGuard<'_, BTreeMap<VgUuid, String>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes groups off the list that are shown by nodes now, or were when this last tried, unless they were declared
    /// lost anew. It is called when groups came to be shown, and from time to time. Gives back whether the list could
    /// be read.
    pub(super) async fn look(&self, fleet: &Fleet) -> bool {
        let listed = match self.list.read().await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the lost volume groups are not known");
                return false;
            }
        };
        self.returned().retain(|vg, note| listed.get(vg) == Some(note));
        for (vg, note) in listed {
            if !matches!(fleet.owner(&vg), Owner::Nobody) {
                self.returned().insert(vg.clone(), note);
            }
            if self.returned().contains_key(&vg) {
                self.take_off(&vg).await;
            }
        }
        true
    }

    async fn take_off(&self, vg: &VgUuid) {
        match self.list.withdraw(vg).await {
            Ok(()) => {
                tracing::warn!(%vg, "a volume group that was declared lost is there: it is lost no more");
                self.returned().remove(vg);
            }
            Err(error) => tracing::warn!(
                %vg,
                error = chain(&error),
                "a volume group that was declared lost is there, and cannot be taken off the list"
            ),
        }
    }

    /// Whether the group is lost. A controller that is new cannot say so: its node may yet come. The API server is
    /// asked only about groups that nobody shows.
    ///
    /// # Errors
    /// The API server did not tell.
    pub(super) async fn holds(&self, fleet: &Fleet, vg: &VgUuid) -> Result<bool, ClusterError> {
        let may_be =
            !fleet.is_new() && matches!(fleet.owner(vg), Owner::Nobody) && !self.returned().contains_key(vg);
        Ok(may_be && self.list.read().await?.contains_key(vg))
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").finish_non_exhaustive()
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
