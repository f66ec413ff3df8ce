use std::sync::Arc;

use super::volumes::Volumes;
use super::{Capacity, CapacityRequest};
use crate::lvm::{Group, Health};
use crate::types::{Bytes, Layout};

impl Volumes {
    /// What creation may use, now. A group that takes no change has none; neither has a place or a group
    /// that is not known.
    pub async fn capacity(&self, request: &CapacityRequest) -> Capacity {
        let groups = match &request.volume_group {
            Some(name) => self.groups.named(name),
            None => self.groups.chosen(),
        };
        let here =
            |group: &Arc<Group>| request.segments.is_empty() || self.is_here(&request.segments, group.uuid());
        let mut sum = Capacity::default();
        for group in groups.into_iter().filter(here) {
            let one = capacity_of(&group).await;
            sum.available = Bytes::new(sum.available.get().saturating_add(one.available.get()));
            sum.maximum = sum.maximum.max(one.maximum);
        }
        sum
    }
}

async fn capacity_of(group: &Arc<Group>) -> Capacity {
    // While somebody tries in vain to read it, there is the view of before: whoever is refused must not see its room.
    let (Ok(_), Ok(Health::Healthy), Ok(view)) = (group.view().await, group.health(), group.last_view())
    else {
        return Capacity::default();
    };
    let room = view.room(group.reserve());
    let size = |extents| view.vg.extent_size.size_of(extents);
    Capacity { available: size(room.usable), maximum: size(room.largest(Layout::Linear)) }
}
