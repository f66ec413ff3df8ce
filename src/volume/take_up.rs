use std::collections::BTreeSet;
use std::sync::Arc;

use super::found::{Found, volume_in};
use super::prepare::too_old;
use super::volumes::Volumes;
use crate::lvm::{Group, Intent, View};
use crate::types::{LvName, VgUuid, VolumeId, VolumeState, chain};

impl Volumes {
    /// Takes up what an ended driver left undone: takes away mounts that it did not finish, resumes volumes
    /// that its lvm has left suspended, prepares those that are blank, and removes hidden ones that serve
    /// nothing any more. It does so in every group as soon as that can be used, now or later, and ends when
    /// the driver does.
    pub async fn take_up(self: &Arc<Self>) {
        if let Err(error) = self.locks.sweep().await {
            tracing::warn!(error = chain(&error), "lock files of removed volumes may be left");
        }
        if let Err(error) = self.aside.clear().await {
            tracing::warn!(error = chain(&error), "an unfinished mount may be left");
        }
        let mut changes = self.groups.changes();
        let mut before = BTreeSet::new();
        loop {
            changes.mark_unchanged();
            let now = self.usable_groups();
            for group in now.iter().filter(|group| !before.contains(group.uuid())) {
                // One group's trouble holds up no other.
                let (volumes, group) = (Arc::clone(self), Arc::clone(group));
                self.tracker.spawn(async move { volumes.take_up_in(&group).await });
            }
            before = now.iter().map(|group| group.uuid().clone()).collect::<BTreeSet<VgUuid>>();
            match self.stop.run_until_cancelled(changes.changed()).await {
                Some(Ok(())) => {}
                Some(Err(_)) | None => return,
            }
        }
    }

    fn usable_groups(&self) -> Vec<Arc<Group>> {
        let serves = |group: &Arc<Group>| group.health().is_ok_and(|health| health.serves());
        self.groups.all().into_iter().filter(serves).collect()
    }

    async fn take_up_in(self: &Arc<Self>, group: &Arc<Group>) {
        // A turn begins with the volumes that a killed lvm has left suspended.
        let view = match group.turn(Intent::Device).await.and_then(|turn| turn.view().cloned()) {
            Ok(view) => view,
            Err(error) => {
                tracing::warn!(vg = %group.uuid(), error = chain(&error), "what was left undone stays so for now");
                return;
            }
        };
        blank(group, &view).iter().for_each(|found| drop(self.prepare(found)));
        if let Err(error) = self.tidy_growth(group, &view).await {
            tracing::warn!(vg = %group.uuid(), error = chain(&error), "cannot tidy up after an interrupted expansion");
        }
    }
}

/// The blank volumes of a group that are young enough to be prepared.
fn blank(group: &Arc<Group>, view: &View) -> Vec<Found> {
    let names = view.lvs().filter_map(|lv| lv.name.parse::<LvName>().ok());
    let volumes = names.filter_map(|name| Some((volume_in(view, &name).ok()??, name)));
    let found = volumes.map(|((lv, tags), name)| Found {
        id: VolumeId { vg: group.uuid().clone(), lv: name },
        group: Arc::clone(group),
        vg_name: view.vg.name.clone(),
        lv,
        tags,
    });
    found.filter(|found| found.tags.state == VolumeState::Blank && !too_old(found)).collect()
}
