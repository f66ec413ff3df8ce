use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::volumes::Volumes;
use crate::lvm::{Group, Health};
use crate::types::{Bytes, GroupState, Layout, VgUuid, chain};

impl Volumes {
    /// What every group that is there has to offer to creation, from memory: as it was read last. Whoever
    /// has just been refused a volume for a group's sake finds the reason here.
    pub fn states(&self) -> Vec<GroupState> {
        self.groups.all().iter().filter_map(|group| state(group, self.groups.is_chosen(group))).collect()
    }

    /// Has a new value whenever [`Volumes::states`] may have one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.groups.changes()
    }

    /// Reads every group again and again, so that changes by others are in [`Volumes::states`] after a
    /// while: `every` tells how long a while. Runs until it is dropped; a reading that has begun goes on.
    pub async fn keep_fresh(&self, every: Duration) {
        let mut readings: BTreeMap<VgUuid, JoinHandle<()>> = BTreeMap::new();
        loop {
            readings.retain(|_, reading| !reading.is_finished());
            // A group that hangs does not hold up the others, and is not asked twice.
            for group in self.groups.all() {
                readings.entry(group.uuid().clone()).or_insert_with(|| self.tracker.spawn(read(group)));
            }
            sleep(every).await;
        }
    }
}

async fn read(group: Arc<Group>) {
    // That it failed is part of the group's state.
    if let Err(error) = group.view().await {
        tracing::debug!(vg = %group.uuid(), error = chain(&error), "a group could not be read");
    }
}

/// `None` for a group that is not there.
fn state(group: &Arc<Group>, chosen: bool) -> Option<GroupState> {
    let (uuid, name) = (group.uuid().clone(), group.name()?);
    let sick = match group.health() {
        Ok(Health::Healthy) if !chosen => {
            Some(format!("its name is {name} now, which is not one of those to use"))
        }
        Ok(Health::Healthy) => None,
        Ok(health) => Some(health.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let trouble = match (sick, group.last_view()) {
        (Some(trouble), _) | (None, Err(trouble)) => trouble,
        (None, Ok(view)) => {
            let room = view.room(group.reserve());
            let size = |extents| view.vg.extent_size.size_of(extents);
            let (available, maximum) = (size(room.usable), size(room.largest(Layout::Linear)));
            return Some(GroupState { uuid, name, trouble: None, available, maximum });
        }
    };
    Some(GroupState { uuid, name, trouble: Some(trouble), available: Bytes::ZERO, maximum: Bytes::ZERO })
}

#[cfg(test)]
mod tests;
