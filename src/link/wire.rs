use crate::proto::quarry::v1 as proto;
use crate::types::{Bytes, GroupState, NodeState, ParseError};

/// A state as it goes over the wire.
pub(super) fn message(state: NodeState) -> proto::NodeState {
    let volume_groups = state.groups.into_iter().map(group_message).collect();
    proto::NodeState { generation: state.generation, volume_groups }
}

fn group_message(state: GroupState) -> proto::VolumeGroup {
    proto::VolumeGroup {
        uuid: state.uuid.to_string(),
        name: state.name.to_string(),
        health: state.trouble.unwrap_or_default(),
        available_bytes: state.available.get(),
        maximum_volume_bytes: state.maximum.get(),
    }
}

/// A state as it came. A group that makes no sense is left out, so that the others stay known.
pub(super) fn state(message: proto::NodeState) -> NodeState {
    let groups = message.volume_groups.into_iter().filter_map(|group| match group_state(group) {
        Ok(state) => Some(state),
        Err(error) => {
            tracing::warn!(%error, "a node's state names a volume group that cannot be");
            None
        }
    });
    NodeState { generation: message.generation, groups: groups.collect() }
}

fn group_state(message: proto::VolumeGroup) -> Result<GroupState, ParseError> {
    let healthy = message.health.is_empty();
    let bytes = |bytes| if healthy { Bytes::new(bytes) } else { Bytes::ZERO };
    Ok(GroupState {
        uuid: message.uuid.parse()?,
        name: message.name.parse()?,
        available: bytes(message.available_bytes),
        maximum: bytes(message.maximum_volume_bytes),
        trouble: (!healthy).then_some(message.health),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(trouble: Option<&str>, maximum: u64) -> GroupState {
        GroupState {
            uuid: "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap(),
            name: "vg0".parse().unwrap(),
            trouble: trouble.map(str::to_owned),
            available: Bytes::new(maximum * 2),
            maximum: Bytes::new(maximum),
        }
    }

    #[test]
    fn a_state_survives_the_wire() {
        let sent =
            NodeState { generation: 7, groups: vec![group(None, 5), group(Some("a disk is missing"), 0)] };
        assert_eq!(state(message(sent.clone())), sent);
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_sick_groups_have_no_room() {
        let groups = vec![group(Some("sick"), 5), group(None, 6), group(None, 7)];
        let mut sent = message(NodeState { generation: 8, groups });
        sent.volume_groups[1].uuid = "../..".to_owned();
        let got = state(sent);
        assert_eq!((got.groups.len(), got.groups[0].maximum), (2, Bytes::ZERO));
        assert_eq!(got.groups[1], group(None, 7));
    }
}
