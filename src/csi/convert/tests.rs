//! Tables of good and bad messages, by the specification's rules for their fields.

use std::collections::HashMap;

use tonic::{Code, Status};

use super::*;
use crate::proto::csi::v1 as proto;
use crate::types::{AccessMode, Bytes, FsType, NODE_KEY, Segment, VG_KEY_PREFIX, VolumeMode, WantedMode};
use crate::volume::{Capacity, Usage, VolumeInfo, VolumeUsage};
use proto::volume_capability::access_mode::Mode;
use proto::volume_capability::{AccessMode as Access, AccessType, BlockVolume, MountVolume};

pub(super) const VG: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

pub(super) fn capability_message(mode: Mode, access_type: AccessType) -> proto::VolumeCapability {
    proto::VolumeCapability {
        access_mode: Some(Access { mode: mode.into() }),
        access_type: Some(access_type),
    }
}

fn block() -> proto::VolumeCapability {
    capability_message(Mode::SingleNodeWriter, AccessType::Block(BlockVolume {}))
}

pub(super) fn mounted_as(fs: &str, flags: &[&str]) -> proto::VolumeCapability {
    let mount_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let mount = MountVolume { fs_type: fs.to_owned(), mount_flags, ..MountVolume::default() };
    capability_message(Mode::SingleNodeWriter, AccessType::Mount(mount))
}

fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn place_of(pairs: &[(&str, &str)]) -> proto::Topology {
    proto::Topology { segments: map(pairs) }
}

fn create() -> proto::CreateVolumeRequest {
    proto::CreateVolumeRequest {
        name: "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10".to_owned(),
        volume_capabilities: vec![mounted_as("", &[])],
        ..Default::default()
    }
}

/// The code, and whether the message names the field.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, field: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(field), "{field} is not named in: {}", status.message());
    assert!(status.details().is_empty());
}

#[test]
fn every_access_mode_is_known_and_those_of_many_nodes_are_refused() {
    let parsed = |mode| capability(Some(&capability_message(mode, AccessType::Block(BlockVolume {}))));
    for (mode, expected) in [
        (Mode::SingleNodeWriter, Some(AccessMode::SingleNodeWriter)),
        (Mode::SingleNodeReaderOnly, Some(AccessMode::SingleNodeReaderOnly)),
        (Mode::SingleNodeSingleWriter, Some(AccessMode::SingleNodeSingleWriter)),
        (Mode::SingleNodeMultiWriter, Some(AccessMode::SingleNodeMultiWriter)),
        (Mode::MultiNodeReaderOnly, None),
        (Mode::MultiNodeSingleWriter, None),
        (Mode::MultiNodeMultiWriter, None),
        (Mode::Unknown, None),
    ] {
        match expected {
            Some(access) => assert_eq!(parsed(mode).unwrap().access, access),
            None => refused(parsed(mode), Code::InvalidArgument, "access_mode"),
        }
    }
    let mut future = block();
    future.access_mode = Some(Access { mode: 99 });
    refused(capability(Some(&future)), Code::InvalidArgument, "access_mode");
}

#[test]
fn a_capability_says_how_a_volume_is_shown() {
    let mode = |message: &_| capability(Some(message)).unwrap().mode;
    assert_eq!(mode(&block()), WantedMode::Block);
    assert_eq!(mode(&mounted_as("", &[])), WantedMode::Filesystem(None));
    for fs in FsType::ALL {
        assert_eq!(mode(&mounted_as(fs.name(), &["noatime"])), WantedMode::Filesystem(Some(fs)));
    }
    refused(capability(Some(&mounted_as("xfs", &["data=journal"]))), Code::InvalidArgument, "largeio");
    capability(Some(&mounted_as("", &["data=journal"]))).unwrap();
    let with_options = capability(Some(&mounted_as("ext4", &["noatime", "ro"]))).unwrap();
    assert!(with_options.options.read_only());

    refused(capability(None), Code::InvalidArgument, "volume_capability");
    refused(capability(Some(&Default::default())), Code::InvalidArgument, "access_mode");
    let mut half = block();
    half.access_type = None;
    refused(capability(Some(&half)), Code::InvalidArgument, "access_type");
    refused(capability(Some(&mounted_as("ntfs", &[]))), Code::InvalidArgument, "fs_type");
    refused(capability(Some(&mounted_as("", &["bind"]))), Code::InvalidArgument, "mount_flags");
    let mount = MountVolume { volume_mount_group: "1000".to_owned(), ..Default::default() };
    let group = capability_message(Mode::SingleNodeWriter, AccessType::Mount(mount));
    refused(capability(Some(&group)), Code::InvalidArgument, "volume_mount_group");
}

#[test]
fn several_capabilities_must_go_together() {
    let one_mode = |messages: &[_]| super::one_mode(messages, FsType::Xfs);
    let of = |fs| VolumeMode::Filesystem(fs);
    assert_eq!(one_mode(&[mounted_as("", &[])]).unwrap(), of(FsType::Xfs));
    assert_eq!(one_mode(&[mounted_as("ext4", &["ro"])]).unwrap(), of(FsType::Ext4));
    assert_eq!(one_mode(&[mounted_as("", &[]), mounted_as("xfs", &["ro"])]).unwrap(), of(FsType::Xfs));
    let two = [mounted_as("", &[]), mounted_as("ext4", &[])];
    refused(one_mode(&two), Code::InvalidArgument, "volume_capabilities");
    let of_another = [mounted_as("", &["compress=zstd"])];
    refused(one_mode(&of_another), Code::InvalidArgument, "volume_capabilities");
    refused(one_mode(&[]), Code::InvalidArgument, "volume_capabilities");
    refused(one_mode(&[block(), mounted_as("", &[])]), Code::InvalidArgument, "volume_capabilities");
    refused(one_mode(&[block(), Default::default()]), Code::InvalidArgument, "volume_capabilities");
}

#[test]
fn sizes_are_not_negative_and_zero_means_nothing() {
    let message = |required_bytes, limit_bytes| proto::CapacityRange { required_bytes, limit_bytes };
    let of = |required, limit| range(Some(&message(required, limit)));
    assert_eq!(range(None).unwrap(), Default::default());
    assert_eq!(of(0, 0).unwrap(), Default::default());
    let both = of(5, 7).unwrap();
    assert_eq!((both.required, both.limit), (Bytes::new(5), Some(Bytes::new(7))));
    assert_eq!(of(i64::MAX, 0).unwrap().required.to_i64(), i64::MAX);
    refused(of(-1, 0), Code::InvalidArgument, "capacity_range");
    refused(of(0, i64::MIN), Code::InvalidArgument, "capacity_range");
    refused(wanted(None), Code::InvalidArgument, "capacity_range");
    refused(wanted(Some(&message(0, 0))), Code::InvalidArgument, "capacity_range");
}

#[test]
fn ids_that_are_none_of_ours_are_unknown_and_not_wrong() {
    let good = format!("{VG}/pvc-1");
    assert_eq!(volume_id(&good).unwrap().unwrap().to_string(), good);
    assert_eq!(existing(&good).unwrap().to_string(), good);
    refused(volume_id(""), Code::InvalidArgument, "volume_id");
    refused(existing(""), Code::InvalidArgument, "volume_id");
    let long = format!("{VG}/{}", "x".repeat(4096));
    for unknown in ["fake-vol-id-1", "../x", "vg/../../etc", "-y", "a\0b", &long, &format!("{VG}/-y")] {
        assert_eq!(volume_id(unknown).unwrap(), None);
        let status = existing(unknown).unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
        assert!(status.message().len() < 300 && !status.message().contains('\0'), "{}", status.message());
    }
}

#[test]
fn places_are_those_that_we_know_the_preferred_ones_first() {
    let node = |name: &str| place_of(&[(NODE_KEY, name)]);
    let segment = |name: &str| vec![Segment::Node(name.parse().unwrap())];
    let of = |requisite: Vec<proto::Topology>, preferred: Vec<proto::Topology>| {
        places(Some(&proto::TopologyRequirement { requisite, preferred }))
    };
    assert_eq!(places(None), Some(vec![]));
    assert_eq!(of(vec![], vec![node("a")]), Some(vec![]));
    assert_eq!(of(vec![node("a"), node("b")], vec![node("b")]), Some(vec![segment("b"), segment("a")]));
    assert_eq!(of(vec![place_of(&[("zone", "z")]), node("a")], vec![]), Some(vec![segment("a")]));
    assert_eq!(of(vec![place_of(&[("zone", "z")])], vec![]), None);
    assert_eq!(of(vec![place_of(&[])], vec![]), None, "a place that says nothing is not every place");
    let both = place_of(&[(NODE_KEY, "a"), ("zone", "z")]);
    assert_eq!(of(vec![both], vec![]), None);
    let vg = place_of(&[(&format!("{VG_KEY_PREFIX}/{VG}"), "true")]);
    assert_eq!(place(&vg), Some(vec![Segment::Vg(VG.parse().unwrap())]));
}

#[test]
fn a_create_request_is_taken_apart() {
    let mut message = create();
    message.capacity_range = Some(proto::CapacityRange { required_bytes: 1 << 30, limit_bytes: 0 });
    message.parameters = map(&[("volumeGroup", "vg0"), ("csi.storage.k8s.io/pv/name", "x")]);
    let request = create_request(&message).unwrap();
    assert_eq!(request.name.as_str(), message.name);
    assert_eq!(request.range.required, Bytes::mib(1024));
    assert_eq!(request.mode, VolumeMode::Filesystem(FsType::Ext4));
    assert_eq!(request.parameters.volume_group, Some("vg0".parse().unwrap()));
    assert!(request.requisite.is_empty());
    message.name = "n".repeat(128);
    assert!(create_request(&message).is_ok(), "128 bytes must do");
}

#[test]
fn a_create_request_with_a_wrong_field_is_refused() {
    type Change = fn(&mut proto::CreateVolumeRequest);
    let cases: [(Change, &str); 12] = [
        (|m| m.name.clear(), "name"),
        (|m| m.name = "n".repeat(129), "name"),
        (|m| m.name = "a\nb".to_owned(), "name"),
        (|m| m.volume_capabilities.clear(), "volume_capabilities"),
        (|m| m.volume_capabilities.push(block()), "volume_capabilities"),
        (|m| m.volume_capabilities = vec![mounted_as("", &["loop"])], "volume_capabilities"),
        (
            |m| m.capacity_range = Some(proto::CapacityRange { required_bytes: -1, limit_bytes: 0 }),
            "capacity_range",
        ),
        (|m| m.parameters = map(&[("volumegroup", "vg0")]), "parameters"),
        (|m| m.parameters = map(&[("volumeGroup", "-x")]), "parameters"),
        (|m| m.volume_content_source = Some(Default::default()), "volume_content_source"),
        (|m| m.mutable_parameters = map(&[("a", "b")]), "mutable_parameters"),
        (|m| m.parameters = map(&[("csi.storage.k8s.io/fstype", "ntfs")]), "parameters"),
    ];
    for (change, field) in cases {
        let mut message = create();
        change(&mut message);
        refused(create_request(&message), Code::InvalidArgument, field);
    }
}

#[test]
fn a_create_request_for_an_unknown_place_sends_the_scheduler_elsewhere() {
    let mut message = create();
    let requisite = vec![place_of(&[("zone", "z")])];
    message.accessibility_requirements = Some(proto::TopologyRequirement { requisite, preferred: vec![] });
    refused(create_request(&message), Code::ResourceExhausted, "topology");
}

#[test]
fn the_file_system_may_come_with_the_class() {
    let mut message = create();
    message.parameters = map(&[("csi.storage.k8s.io/fstype", "ext4")]);
    assert_eq!(create_request(&message).unwrap().mode, VolumeMode::Filesystem(FsType::Ext4));
    message.volume_capabilities = vec![block()];
    assert_eq!(create_request(&message).unwrap().mode, VolumeMode::Block);
    message.volume_capabilities = vec![mounted_as("xfs", &[])];
    refused(create_request(&message), Code::InvalidArgument, "the class asks for ext4");
}

#[test]
fn a_class_says_how_its_file_systems_are_made() {
    let with = |fs: &str, options: &str| {
        let mut message = create();
        message.volume_capabilities = vec![mounted_as(fs, &[])];
        message.parameters = map(&[("mkfsOptions", options)]);
        create_request(&message)
    };
    assert_eq!(with("xfs", "rmapbt=1").unwrap().make.to_string(), "rmapbt=1");
    assert!(with("xfs", "").unwrap().make.is_empty());
    refused(with("ext4", "rmapbt=1"), Code::InvalidArgument, "is not one of: bytes-per-inode=4096");
    refused(with("btrfs", "-f"), Code::InvalidArgument, "csum=xxhash");
    let mut raw = create();
    raw.volume_capabilities = vec![block()];
    raw.parameters = map(&[("mkfsOptions", "rmapbt=1")]);
    assert!(create_request(&raw).unwrap().make.is_empty(), "one class may serve both kinds");
}

#[test]
fn capacity_of_what_cannot_be_made_is_none() {
    let none = |message: &proto::GetCapacityRequest| capacity_request(message).unwrap().is_none();
    let mut message = proto::GetCapacityRequest::default();
    assert!(!none(&message), "without any field it means all there is");
    message.accessible_topology = Some(place_of(&[]));
    assert!(none(&message));
    message.accessible_topology = Some(place_of(&[("zone", "z")]));
    assert!(none(&message));
    message.accessible_topology = Some(place_of(&[(NODE_KEY, "n1")]));
    message.parameters = map(&[("volumeGroup", "vg0"), ("csi.storage.k8s.io/fstype", "ext4")]);
    let request = capacity_request(&message).unwrap().unwrap();
    assert_eq!(request.volume_group, Some("vg0".parse().unwrap()));
    assert_eq!(request.segments, [Segment::Node("n1".parse().unwrap())]);
    message.parameters = map(&[("volumeGroup", "vg0"), ("invented", "later")]);
    let newer = capacity_request(&message).unwrap().unwrap();
    assert_eq!(newer.volume_group, request.volume_group, "a newer node may know the other");
    message.parameters = map(&[("volumeGroups", "vg0")]);
    let any = capacity_request(&message).unwrap().unwrap();
    assert_eq!((any.volume_group, any.segments), (None, request.segments), "CreateVolume says what is wrong");
    message.volume_capabilities =
        vec![capability_message(Mode::MultiNodeMultiWriter, AccessType::Block(BlockVolume {}))];
    assert!(none(&message));
    message.volume_capabilities = vec![Default::default()];
    refused(capacity_request(&message), Code::InvalidArgument, "volume_capabilities");
}

#[test]
fn capabilities_are_confirmed_only_if_all_of_them_hold() {
    let ask = |capabilities: Vec<proto::VolumeCapability>| {
        let message = proto::ValidateVolumeCapabilitiesRequest {
            volume_id: format!("{VG}/v"),
            volume_capabilities: capabilities.clone(),
            volume_context: map(&[("a", "b")]),
            ..Default::default()
        };
        question(&message).map(|question| question.answer(VolumeMode::Block, capabilities))
    };
    let confirmed = ask(vec![block()]).unwrap().confirmed.unwrap();
    assert_eq!(confirmed.volume_capabilities, [block()]);
    assert!(confirmed.volume_context.is_empty(), "what was not checked is not confirmed");
    let multi = capability_message(Mode::MultiNodeMultiWriter, AccessType::Block(BlockVolume {}));
    for bad in [vec![block(), mounted_as("", &[])], vec![multi], vec![mounted_as("ntfs", &[])]] {
        let answer = ask(bad).unwrap();
        assert!(answer.confirmed.is_none() && !answer.message.is_empty());
    }
    refused(ask(vec![]), Code::InvalidArgument, "volume_capabilities");
    refused(ask(vec![Default::default()]), Code::InvalidArgument, "volume_capabilities");
    refused(question(&Default::default()), Code::InvalidArgument, "volume_id");
}

#[test]
fn a_volume_is_where_its_group_is() {
    let info = VolumeInfo {
        id: format!("{VG}/pvc-1").parse().unwrap(),
        size: Bytes::mib(12),
        mode: VolumeMode::Block,
    };
    let shown = volume(&info);
    assert_eq!(shown.volume_id, format!("{VG}/pvc-1"));
    assert_eq!(shown.capacity_bytes, 12 << 20);
    assert!(shown.volume_context.is_empty());
    assert_eq!(shown.accessible_topology, [place_of(&[(&format!("{VG_KEY_PREFIX}/{VG}"), "true")])]);
}

#[test]
fn capacity_always_has_both_numbers() {
    let none = capacity(Capacity::default());
    assert_eq!((none.available_capacity, none.maximum_volume_size), (0, Some(0)));
}

#[test]
fn usage_is_told_in_each_unit_that_there_is() {
    let count = |total| Usage { total, used: 1, available: 2 };
    let units = |shown: &[proto::VolumeUsage]| shown.iter().map(|u| (u.unit(), u.total)).collect::<Vec<_>>();
    use proto::volume_usage::Unit;
    let filesystem = usage(VolumeUsage::Filesystem { bytes: count(10), inodes: count(u64::MAX) });
    assert_eq!(units(&filesystem), [(Unit::Bytes, 10), (Unit::Inodes, i64::MAX)]);
    let without_inodes = usage(VolumeUsage::Filesystem { bytes: count(10), inodes: count(0) });
    assert_eq!(units(&without_inodes), [(Unit::Bytes, 10)]);
    assert_eq!(units(&usage(VolumeUsage::Block(Bytes::new(7)))), [(Unit::Bytes, 7)]);
}
