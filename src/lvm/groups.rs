use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::changes::Changes;
use super::{Backend, Group, GroupError, Sighting, keeper, sightings};
use crate::types::{Bytes, VgName, VgPattern, VgUuid};

/// Which volume groups to use, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The groups' name, or a pattern over names.
    pub pattern: VgPattern,
    /// What is kept of a group's room for growth: creation cannot touch it.
    pub reserve: Bytes,
}

/// How groups are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The groups to use. Where several match a name the first counts.
    pub selections: Vec<Selection>,
    /// How long a change may take before its group counts as stuck.
    pub patience: Duration,
    /// How long there must be no change before the metadata is backed up, so that many changes make
    /// one backup.
    pub backup_delay: Duration,
}

/// Every volume group that this driver uses.
pub struct Groups {
    backend: Arc<dyn Backend>,
    settings: Settings,
    known: Mutex<BTreeMap<VgUuid, Arc<Group>>>,
    changes: Changes,
    looking: tokio::sync::Mutex<()>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Groups {
    /// An empty set; [`Groups::rescan`] fills it. Background work runs on `tracker` until `stop`.
    pub fn new(
        backend: Arc<dyn Backend>,
        settings: Settings,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let (known, looking) = (Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(Self { backend, settings, known, changes: Changes::default(), looking, tracker, stop })
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<VgUuid, Arc<Group>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a new value whenever something about a group is no longer as it was: it came, went, was changed,
    /// took sick or got well.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All the groups that were ever seen, gone ones included.
    pub fn all(&self) -> Vec<Arc<Group>> {
        self.known().values().cloned().collect()
    }

    /// The groups in which new volumes are made: those that are there, under a name that was chosen. One
    /// that got another name keeps only the volumes that it has.
    pub fn chosen(&self) -> Vec<Arc<Group>> {
        self.all().into_iter().filter(|group| self.is_chosen(group)).collect()
    }

    /// Whether new volumes are made in the group: it is there, under a name that was chosen.
    pub fn is_chosen(&self, group: &Group) -> bool {
        group.name().is_some_and(|name| self.selection(&name).is_some())
    }

    /// The names of the chosen groups.
    pub fn names(&self) -> Vec<VgName> {
        self.chosen().iter().filter_map(|group| group.name()).collect()
    }

    /// The chosen groups of that name. More than one means that each of them is unhealthy.
    pub fn named(&self, name: &VgName) -> Vec<Arc<Group>> {
        self.chosen().into_iter().filter(|group| group.name().as_ref() == Some(name)).collect()
    }

    fn selection(&self, name: &VgName) -> Option<&Selection> {
        self.settings.selections.iter().find(|selection| selection.pattern.matches(name))
    }

    /// The group of that identity. Where it is not known, or is gone, the machine is looked at first.
    ///
    /// # Errors
    /// It is not there, or the machine could not be looked at.
    pub async fn find(&self, uuid: &VgUuid) -> Result<Arc<Group>, GroupError> {
        let known = || self.known().get(uuid).filter(|group| group.name().is_some()).cloned();
        if let Some(group) = known() {
            return Ok(group);
        }
        self.rescan().await?;
        known().ok_or_else(|| GroupError::Unseen(uuid.clone()))
    }

    /// Whether the device is a disk of a group of ours, and everything that was committed there is known.
    pub(super) async fn knows_what_is_on(&self, device: &Path) -> bool {
        let holds = |group: &Arc<Group>| group.devices().iter().any(|own| own == device);
        match self.all().into_iter().find(holds) {
            Some(group) => group.healthy().is_ok() && group.is_as_read().await,
            None => false,
        }
    }

    /// Lets go of what runs LVM's commands, so that it ends though somebody holds on to the groups. A group
    /// with a change under way keeps it.
    pub fn rest(&self) {
        self.all().iter().for_each(|group| group.rest());
    }

    /// Looks at the whole machine: finds new groups, and takes note of what became of known ones.
    ///
    /// # Errors
    /// The look failed; nothing is changed then.
    pub async fn rescan(&self) -> Result<(), GroupError> {
        let _one_at_a_time = self.looking.lock().await;
        let rows = self.backend.look().await.map_err(GroupError::Look)?;
        let mut seen = sightings(&rows, self.backend.system_id());
        for group in self.all() {
            let own = seen.iter().position(|sighting| sighting.vg.uuid == *group.uuid());
            group.note(own.map(|own| seen.swap_remove(own)));
        }
        for sighting in seen {
            self.adopt(sighting);
        }
        Ok(())
    }

    /// Begins to use a new group, if it is one of those to use.
    fn adopt(&self, sighting: Sighting) {
        let Some(Selection { reserve, .. }) = self.selection(&sighting.vg.name) else { return };
        let vg = &sighting.vg;
        tracing::info!(
            vg = %vg.uuid, name = %vg.name, health = %sighting.health,
            free = %vg.extent_size.size_of(vg.free), %reserve, devices = ?sighting.devices,
            "found a volume group"
        );
        let changes = self.changes.clone();
        let group =
            Group::new(Arc::clone(&self.backend), sighting, *reserve, self.settings.patience, changes);
        let keeper =
            keeper::back_up_after_changes(Arc::clone(&group), self.settings.backup_delay, self.stop.clone());
        self.tracker.spawn(keeper);
        self.known().insert(group.uuid().clone(), group);
        self.changes.tell();
    }
}
