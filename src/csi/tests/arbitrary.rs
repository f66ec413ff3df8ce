//! Whatever is sent: an answer, never a panic, and no word of it in a command but as one of our types.

use std::collections::HashMap;

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::lvm::Command;
use crate::types::{LvName, Owner};
use proto::volume_capability::MountVolume;

/// What no field should ever hold, and what some may.
const WORDS: [&str; 24] = [
    "",
    "..",
    ".",
    "/",
    "-y",
    "--config=devices{filter=[]}",
    "../../etc/passwd",
    "a/../b",
    "a\0b",
    "a\nlvremove -y vg0",
    "\u{1b}[2J",
    "$(reboot)",
    "`reboot`",
    "a b",
    "\"quoted",
    "\\",
    "ä€\u{202e}",
    "@tag",
    "vg0",
    "pvc-1",
    "ext4",
    "xfs",
    "rw,suid",
    "noatime",
];

/// The keys that mean something in the parameters of a class.
const KEYS: [&str; 6] = [
    "volumeGroup",
    "mkfsOptions",
    "csi.storage.k8s.io/fstype",
    "csi.storage.k8s.io/pvc/name",
    "csi.storage.k8s.io/pvc/namespace",
    "csi.storage.k8s.io/pv/name",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(&WORDS[..]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => select(&["a", "/", "-", "é", "../"][..]).prop_map(|part| part.repeat(4096 / part.len())),
    ]
}

/// A path below a folder of the test's own, or one that is no path: nothing of the machine is to be touched.
fn path() -> impl Strategy<Value = String> {
    word().prop_map(|word| match word.strip_prefix('/') {
        Some(rest) => format!("{NOWHERE}/{rest}"),
        None if word.len().is_multiple_of(2) => format!("{NOWHERE}/{word}"),
        None => word,
    })
}

/// There is no such folder, and none of ours is made in it.
const NOWHERE: &str = "/nowhere/at/all";

/// Ids, many of them of the group and the volume that are there.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(VOLUME.to_owned()),
        2 => word().prop_map(|word| format!("{GROUP}/{word}")),
        1 => word(),
    ]
}

/// Stand for what is known only once the machine is there.
const GROUP: &str = "GROUP";
const VOLUME: &str = "VOLUME";

fn words() -> impl Strategy<Value = HashMap<String, String>> {
    let key = prop_oneof![select(&KEYS[..]).prop_map(str::to_owned), word()];
    hash_map(key, word(), 0..3)
}

fn range() -> impl Strategy<Value = Option<proto::CapacityRange>> {
    let size = || prop_oneof![Just(0), 0..1_i64 << 30, any::<i64>()];
    proptest::option::of(
        (size(), size())
            .prop_map(|(required_bytes, limit_bytes)| proto::CapacityRange { required_bytes, limit_bytes }),
    )
}

prop_compose! {
    fn capability()(
        fs_type in proptest::option::of(word()),
        mount_flags in vec(word(), 0..3),
        volume_mount_group in word(),
        mode in prop_oneof![0..9, any::<i32>()],
    ) -> proto::VolumeCapability {
        let access_type = match fs_type {
            Some(fs_type) => AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group }),
            None => AccessType::Block(BlockVolume {}),
        };
        proto::VolumeCapability { access_mode: Some(AccessMode { mode }), access_type: Some(access_type) }
    }
}

fn topology() -> impl Strategy<Value = proto::Topology> {
    let key =
        prop_oneof![Just(NODE_KEY.to_owned()), word().prop_map(|word| format!("{VG_KEY_PREFIX}/{word}"))];
    hash_map(key, word(), 0..3).prop_map(|segments| proto::Topology { segments })
}

/// One call, of any kind.
#[derive(Debug, Clone)]
enum Call {
    Create(proto::CreateVolumeRequest),
    Delete(proto::DeleteVolumeRequest),
    Validate(proto::ValidateVolumeCapabilitiesRequest),
    Capacity(proto::GetCapacityRequest),
    List(proto::ListVolumesRequest),
    Expand(proto::ControllerExpandVolumeRequest),
    Stage(proto::NodeStageVolumeRequest),
    Unstage(proto::NodeUnstageVolumeRequest),
    Publish(proto::NodePublishVolumeRequest),
    Unpublish(proto::NodeUnpublishVolumeRequest),
    Stats(proto::NodeGetVolumeStatsRequest),
    NodeExpand(proto::NodeExpandVolumeRequest),
}

fn call() -> impl Strategy<Value = Call> {
    let create = (word(), range(), vec(capability(), 0..3), words(), vec(topology(), 0..2)).prop_map(
        |(name, capacity_range, volume_capabilities, parameters, requisite)| {
            let places = proto::TopologyRequirement { requisite, ..Default::default() };
            Call::Create(proto::CreateVolumeRequest {
                name,
                capacity_range,
                volume_capabilities,
                parameters,
                accessibility_requirements: (!places.requisite.is_empty()).then_some(places),
                ..Default::default()
            })
        },
    );
    let delete = id()
        .prop_map(|volume_id| Call::Delete(proto::DeleteVolumeRequest { volume_id, ..Default::default() }));
    let validate =
        (id(), vec(capability(), 0..3), words()).prop_map(|(volume_id, capabilities, parameters)| {
            Call::Validate(proto::ValidateVolumeCapabilitiesRequest {
                volume_id,
                volume_capabilities: capabilities,
                parameters,
                ..Default::default()
            })
        });
    let capacity = (vec(capability(), 0..2), words(), proptest::option::of(topology())).prop_map(
        |(volume_capabilities, parameters, accessible_topology)| {
            Call::Capacity(proto::GetCapacityRequest { volume_capabilities, parameters, accessible_topology })
        },
    );
    let list = (any::<i32>(), prop_oneof![id(), word()]).prop_map(|(max_entries, starting_token)| {
        Call::List(proto::ListVolumesRequest { max_entries, starting_token })
    });
    let expand = (id(), range(), proptest::option::of(capability())).prop_map(
        |(volume_id, capacity_range, volume_capability)| {
            Call::Expand(proto::ControllerExpandVolumeRequest {
                volume_id,
                capacity_range,
                volume_capability,
                ..Default::default()
            })
        },
    );
    prop_oneof![3 => create, 2 => delete, 1 => validate, 1 => capacity, 1 => list, 2 => expand, 6 => node_call()]
}

fn node_call() -> impl Strategy<Value = Call> {
    let fields = (id(), path(), path(), proptest::option::of(capability()), range(), any::<bool>());
    (fields, 0..6).prop_map(
        |((volume_id, staging, target, volume_capability, capacity_range, readonly), which)| match which {
            0 => Call::Stage(proto::NodeStageVolumeRequest {
                volume_id,
                staging_target_path: staging,
                volume_capability,
                ..Default::default()
            }),
            1 => Call::Unstage(proto::NodeUnstageVolumeRequest { volume_id, staging_target_path: staging }),
            2 => Call::Publish(proto::NodePublishVolumeRequest {
                volume_id,
                staging_target_path: staging,
                target_path: target,
                volume_capability,
                readonly,
                ..Default::default()
            }),
            3 => Call::Unpublish(proto::NodeUnpublishVolumeRequest { volume_id, target_path: target }),
            4 => Call::Stats(proto::NodeGetVolumeStatsRequest {
                volume_id,
                volume_path: target,
                staging_target_path: staging,
            }),
            _ => Call::NodeExpand(proto::NodeExpandVolumeRequest {
                volume_id,
                volume_path: target,
                capacity_range,
                staging_target_path: staging,
                volume_capability,
                ..Default::default()
            }),
        },
    )
}

impl Call {
    /// The same call, of the group and the volume that are there.
    fn on(mut self, vg: &VgUuid, volume: &str) -> Self {
        let id = match &mut self {
            Self::Create(_) | Self::Capacity(_) => return self,
            Self::Delete(request) => &mut request.volume_id,
            Self::Validate(request) => &mut request.volume_id,
            Self::List(request) => &mut request.starting_token,
            Self::Expand(request) => &mut request.volume_id,
            Self::Stage(request) => &mut request.volume_id,
            Self::Unstage(request) => &mut request.volume_id,
            Self::Publish(request) => &mut request.volume_id,
            Self::Unpublish(request) => &mut request.volume_id,
            Self::Stats(request) => &mut request.volume_id,
            Self::NodeExpand(request) => &mut request.volume_id,
        };
        *id = id.replace(VOLUME, volume).replace(GROUP, vg.as_str());
        self
    }

    async fn send(self, f: &Fixture) -> Result<(), Status> {
        let (controller, node) = (&f.controller, &f.node);
        match self {
            Self::Create(request) => controller.create_volume(Request::new(request)).await.map(drop),
            Self::Delete(request) => controller.delete_volume(Request::new(request)).await.map(drop),
            Self::Validate(request) => {
                controller.validate_volume_capabilities(Request::new(request)).await.map(drop)
            }
            Self::Capacity(request) => controller.get_capacity(Request::new(request)).await.map(drop),
            Self::List(request) => controller.list_volumes(Request::new(request)).await.map(drop),
            Self::Expand(request) => {
                controller.controller_expand_volume(Request::new(request)).await.map(drop)
            }
            Self::Stage(request) => node.node_stage_volume(Request::new(request)).await.map(drop),
            Self::Unstage(request) => node.node_unstage_volume(Request::new(request)).await.map(drop),
            Self::Publish(request) => node.node_publish_volume(Request::new(request)).await.map(drop),
            Self::Unpublish(request) => node.node_unpublish_volume(Request::new(request)).await.map(drop),
            Self::Stats(request) => node.node_get_volume_stats(Request::new(request)).await.map(drop),
            Self::NodeExpand(request) => node.node_expand_volume(Request::new(request)).await.map(drop),
        }
    }
}

/// Holds that LVM was asked for nothing but what our types allow: names that stand for themselves, and tags of
/// ours whose characters LVM takes (lvm(8), "Valid Names" and "Tags").
fn holds_our_types(command: &Command) {
    let words = |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
    let name_is_good = |name: &LvName| {
        let text = name.as_str();
        assert!(!text.starts_with('-') && !text.is_empty() && words(text, "-._+"), "{command:?}");
    };
    match command {
        Command::Group | Command::Volumes => {}
        Command::Create { name, tags, .. } => {
            name_is_good(name);
            assert!(tags.iter().all(|tag| !tag.starts_with('-') && words(tag, "_+.-/=!:#&")), "{command:?}");
            let owner = Owner::parse(tags.iter().map(String::as_str));
            assert!(matches!(owner, Ok(Owner::Volume(_) | Owner::Growth(_))), "{command:?}: {owner:?}");
        }
        Command::Retag { name, remove, add } => {
            name_is_good(name);
            assert!(remove.starts_with("q.s=") && add.starts_with("q.s="), "{command:?}");
        }
        Command::Extend { name, .. } => name_is_good(name),
        Command::Volume(name)
        | Command::Segments(name)
        | Command::Activate(name)
        | Command::Refresh(name)
        | Command::Remove(name) => name_is_good(name),
    }
}

proptest! {
    #[test]
    fn arbitrary_requests_get_an_answer_and_reach_lvm_as_our_types_only(calls in vec(call(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let f = fixture().await;
            let made = f.controller.create_volume(Request::new(create("there", 8))).await.unwrap().into_inner();
            let volume = made.volume.unwrap().volume_id;
            for call in calls {
                let shown = format!("{call:?}");
                if let Err(status) = call.on(&f.vg, &volume).send(&f).await {
                    let message = status.message();
                    assert!(!message.is_empty() && message.len() <= 1024, "{shown}: {message}");
                    assert!(!message.contains(|c: char| c.is_control()), "{shown}: {message:?}");
                    assert_ne!(status.code(), Code::Unknown, "{shown}");
                }
            }
            for event in f.lvm.take_events() {
                if let Event::Run(command) = event {
                    holds_our_types(&command);
                }
            }
        });
        assert!(!std::path::Path::new(NOWHERE).exists(), "nothing is made for a volume that is not there");
    }
}
