use std::sync::Arc;

use super::choice::{holder, nothing_started, roomiest, usable_of};
use super::found::{Found, volume_in};
use super::volumes::Volumes;
use super::{CreateRequest, VolumeError, VolumeInfo};
use crate::fs::{self, Limits};
use crate::lvm::{Group, GroupError, Intent, Turn, View};
use crate::types::{
    Bytes, CapacityRange, Extents, Layout, LvName, MakeOptions, Segment, VgUuid, VolumeId, VolumeMode,
    VolumeState, VolumeTags,
};

/// How often the group with the most room is chosen while others take room from it.
const MOST_CHOICES: usize = 3;

impl Volumes {
    /// Makes a volume, or finds the one that an earlier call of that name made. Its preparation begins
    /// at once, and does not hold up the answer.
    ///
    /// # Errors
    /// [`VolumeError::NoPlace`] and [`VolumeError::NoRoom`] mean that nothing was started.
    pub async fn create(self: &Arc<Self>, request: &CreateRequest) -> Result<VolumeInfo, VolumeError> {
        let name = LvName::for_volume(&request.name);
        let _busy = self.busy.take(&name, "create")?;
        match self.create_here(name, request).await {
            // It went away just now, and is no longer among those that are there.
            Err(VolumeError::Unusable(GroupError::Unseen(_))) => {
                Err(VolumeError::NoPlace(self.no_group(request)))
            }
            other => other,
        }
    }

    async fn create_here(
        self: &Arc<Self>,
        name: LvName,
        request: &CreateRequest,
    ) -> Result<VolumeInfo, VolumeError> {
        let candidates = self.candidates(request)?;
        if let Some(group) = holder(&candidates, &name).await? {
            let turn = group.turn(Intent::Device).await?;
            let view = Arc::clone(turn.view()?);
            let existing = self.compare(&group, &view, &name, request)?;
            return existing.ok_or_else(|| VolumeError::Busy { what: format!("a change of {name}") });
        }
        self.cut_in_one_of(candidates, &name, request).await
    }

    /// Cuts the volume in the group with the most room. That may have less by the time that its turn comes: then
    /// another may have the most, and is chosen. Where it is too little, or the turn does not come since the group
    /// cannot be used any more, the next is tried, and the refusal is that of the first.
    async fn cut_in_one_of(
        self: &Arc<Self>,
        mut groups: Vec<Arc<Group>>,
        name: &LvName,
        request: &CreateRequest,
    ) -> Result<VolumeInfo, VolumeError> {
        let (mut refused, mut choices) = (None, 0);
        loop {
            let (room, group) = match roomiest(&groups).await {
                Ok(best) => best,
                Err(error) => return Err(refused.unwrap_or(error)),
            };
            let mut turn = match group.turn(Intent::Change).await {
                Ok(turn) => turn,
                Err(error) => {
                    leave_out(&mut groups, &group);
                    refused.get_or_insert(nothing_started(error));
                    continue;
                }
            };
            let view = Arc::clone(turn.view()?);
            if let Some(existing) = self.compare(&group, &view, name, request)? {
                return Ok(existing);
            }
            choices += 1;
            if groups.len() > 1 && choices < MOST_CHOICES && usable_of(&group, &view) < room {
                continue;
            }
            match self.cut(&mut turn, &view, name.clone(), request).await {
                Err(no_room @ VolumeError::NoRoom { .. }) => {
                    leave_out(&mut groups, &group);
                    refused.get_or_insert(no_room);
                }
                made => return made,
            }
        }
    }

    /// The groups that the request may use.
    fn candidates(&self, request: &CreateRequest) -> Result<Vec<Arc<Group>>, VolumeError> {
        let groups: Vec<Arc<Group>> = match &request.parameters.volume_group {
            Some(name) => self.groups.named(name),
            None => self.groups.chosen(),
        };
        if groups.is_empty() {
            return Err(VolumeError::NoPlace(self.no_group(request)));
        }
        let here: Vec<_> =
            groups.into_iter().filter(|group| self.admits(&request.requisite, group.uuid())).collect();
        if here.is_empty() {
            let reason = format!("it was asked for in another place than this node, {}", self.node);
            return Err(VolumeError::NoPlace(reason));
        }
        Ok(here)
    }

    fn no_group(&self, request: &CreateRequest) -> String {
        let wanted = request
            .parameters
            .volume_group
            .as_ref()
            .map_or_else(|| "volume group".to_owned(), |name| format!("volume group {name}"));
        let names: Vec<String> = self.groups.names().iter().map(ToString::to_string).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("node {} has no {wanted} that Quarry uses; it has: {there}", self.node)
    }

    /// Whether one of the places asked for is this node, with that group.
    pub(super) fn admits(&self, places: &[Vec<Segment>], vg: &VgUuid) -> bool {
        places.is_empty() || places.iter().any(|place| self.is_here(place, vg))
    }

    pub(super) fn is_here(&self, place: &[Segment], vg: &VgUuid) -> bool {
        !place.is_empty()
            && place.iter().all(|segment| match segment {
                Segment::Node(node) => *node == self.node,
                Segment::Vg(uuid) => uuid == vg,
            })
    }

    /// The volume of that name, if there is one and it is what is asked for.
    fn compare(
        &self,
        group: &Arc<Group>,
        view: &View,
        name: &LvName,
        request: &CreateRequest,
    ) -> Result<Option<VolumeInfo>, VolumeError> {
        let Some((lv, tags)) = volume_in(view, name)? else { return Ok(None) };
        if let Some(difference) = difference(&tags, lv.size, request) {
            return Err(VolumeError::Exists { name: request.name.clone(), difference });
        }
        let id = VolumeId { vg: group.uuid().clone(), lv: name.clone() };
        Ok(Some(VolumeInfo { id, size: lv.size, mode: tags.mode }))
    }

    async fn cut(
        self: &Arc<Self>,
        turn: &mut Turn,
        view: &View,
        name: LvName,
        request: &CreateRequest,
    ) -> Result<VolumeInfo, VolumeError> {
        let group = Arc::clone(turn.group());
        let extents = request.range.extents(view.vg.extent_size, floor(request)?)?;
        room_for(&group, view, extents)?;
        let tags = VolumeTags {
            state: VolumeState::Blank,
            name: request.name.clone(),
            mode: request.mode,
            claim: request.parameters.claim.clone(),
            cluster: request.cluster.clone(),
            make: request.make.clone(),
        };
        let lv = match turn.create(&name, extents, tags.encode()).await {
            Ok(lv) => lv,
            Err(refused @ GroupError::Refused { .. }) => {
                // Another driver may have made it since the turn began: two overlap during a roll-out.
                let view = Arc::clone(turn.view()?);
                if let Some(existing) = self.compare(&group, &view, &name, request)? {
                    return Ok(existing);
                }
                room_for(&group, &view, extents)?;
                return Err(refused.into());
            }
            Err(unhealthy @ GroupError::Unhealthy { .. }) => return Err(nothing_started(unhealthy)),
            Err(error) => return Err(error.into()),
        };
        let id = VolumeId { vg: group.uuid().clone(), lv: name };
        let info = VolumeInfo { id: id.clone(), size: lv.size, mode: request.mode };
        tracing::info!(volume_id = %id, size = %lv.size, mode = %request.mode, "created");
        self.prepare(&Found { id, group, vg_name: view.vg.name.clone(), lv, tags });
        Ok(info)
    }
}

/// The smallest volume that can be made for the request. A little more than was asked for is given without a
/// word, as whole extents are; many times as much is not.
fn floor(request: &CreateRequest) -> Result<Bytes, VolumeError> {
    let VolumeMode::Filesystem(fs) = request.mode else { return Ok(Bytes::ZERO) };
    let Limits { minimum, rounds_up } = fs::of(fs).limits();
    let CapacityRange { required, limit } = request.range;
    let named = if required > Bytes::ZERO { Some(required) } else { limit };
    match named {
        Some(asked) if asked < minimum && !rounds_up => Err(VolumeError::TooSmall { fs, asked, minimum }),
        _ => Ok(minimum),
    }
}

fn leave_out(groups: &mut Vec<Arc<Group>>, one: &Arc<Group>) {
    groups.retain(|other| !Arc::ptr_eq(other, one));
}

fn room_for(group: &Group, view: &View, wanted: Extents) -> Result<(), VolumeError> {
    let room = view.room(group.reserve());
    let largest = room.largest(Layout::Linear);
    if wanted <= largest {
        return Ok(());
    }
    let size = |extents| view.vg.extent_size.size_of(extents);
    Err(VolumeError::NoRoom {
        vg: view.vg.name.clone(),
        wanted: size(wanted),
        free: size(room.free),
        unallocatable: size(room.unallocatable),
        reserve: size(room.kept),
        largest: size(largest),
        full: room.full,
    })
}

/// In what an existing volume is not what is asked for now.
fn difference(tags: &VolumeTags, size: Bytes, request: &CreateRequest) -> Option<String> {
    if tags.name != request.name {
        return Some(format!("it was made for the name {}", tags.name));
    }
    if tags.mode != request.mode {
        return Some(format!("it is made as {}, and {} is asked for", tags.mode, request.mode));
    }
    if tags.make != request.make {
        let words = |make: &MakeOptions| if make.is_empty() { "none".to_owned() } else { make.to_string() };
        let (is, asked) = (words(&tags.make), words(&request.make));
        return Some(format!("its file system has the mkfs options {is}, and {asked} are asked for"));
    }
    (!request.range.admits(size)).then(|| format!("it has {size}, which is not in the range asked for"))
}
