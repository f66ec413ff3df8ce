//! Each service against a machine in memory: what conformance suites and strange callers send.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Code, Request, Response, Status};

use super::*;
use crate::device::Dm;
use crate::exec::NoPrograms;
use crate::lvm::scripted::{Event, ScriptedBackend};
use crate::lvm::{Groups, Selection, Settings};
use crate::proto::csi::v1 as proto;
use crate::types::{Bytes, NODE_KEY, VG_KEY_PREFIX, VgUuid};
use crate::volume::{Parts, Volumes};
use proto::controller_server::Controller as _;
use proto::identity_server::Identity as _;
use proto::node_server::Node as _;
use proto::volume_capability::access_mode::Mode;
use proto::volume_capability::{AccessMode, AccessType, BlockVolume};

mod arbitrary;
mod crowd;
mod stock;

/// Ids that this driver never gave.
const UNKNOWN: [&str; 6] = ["fake-vol-id-1", "../x", "vg/../../etc", "-y", "vg/lv;rm", "a\0b"];

/// An id that it may have given, of a group that is not there.
const ELSEWHERE: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4/pvc-1";

struct Fixture {
    _dir: tempfile::TempDir,
    lvm: Arc<ScriptedBackend>,
    vg: VgUuid,
    controller: Controller,
    node: Node,
    stock: Stock,
}

/// One group of 100 extents of 4 MiB, of which 10 are kept.
async fn fixture() -> Fixture {
    fixture_of(&["vg0"]).await
}

/// Such groups, the first of which is the fixture's own.
async fn fixture_of(names: &[&str]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let lvm = ScriptedBackend::new();
    let vgs: Vec<VgUuid> =
        names.iter().map(|name| lvm.add_vg(name, &[(&format!("/dev/{name}-disk"), 100)])).collect();
    let vg = vgs[0].clone();
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let settings = Settings {
        selections: vec![Selection { pattern: "vg*".parse().unwrap(), reserve: Bytes::mib(40) }],
        patience: Duration::from_secs(30),
        backup_delay: Duration::from_secs(30),
    };
    let backend: Arc<ScriptedBackend> = Arc::clone(&lvm);
    let groups = Groups::new(backend, settings, tracker.clone(), stop.clone());
    groups.rescan().await.unwrap();
    let volumes = Volumes::new(Parts {
        groups,
        programs: Arc::new(NoPrograms),
        dm: Dm::new(dir.path().join("nodes")),
        node: "n1".parse().unwrap(),
        lock_dir: dir.path().join("locks"),
        mount_dir: dir.path().join("mounts"),
        tracker,
        stop,
    });
    let controller = Controller::new(Arc::clone(&volumes));
    let node = Node::new(Arc::clone(&volumes));
    Fixture { _dir: dir, lvm, vg, controller, node, stock: Stock::new(volumes) }
}

fn block() -> proto::VolumeCapability {
    proto::VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    }
}

fn create(name: &str, mib: i64) -> proto::CreateVolumeRequest {
    proto::CreateVolumeRequest {
        name: name.to_owned(),
        volume_capabilities: vec![block()],
        capacity_range: Some(proto::CapacityRange { required_bytes: mib << 20, limit_bytes: 0 }),
        ..Default::default()
    }
}

#[track_caller]
fn code<T>(result: Result<Response<T>, Status>) -> Code {
    let status = result.err().expect("it was not refused");
    assert!(!status.message().is_empty() && status.details().is_empty(), "{status}");
    status.code()
}

#[tokio::test]
async fn who_we_are_is_what_conformance_suites_expect() {
    let identity = Identity::new(|| false);
    let info = identity.get_plugin_info(Request::new(Default::default())).await.unwrap().into_inner();
    assert_eq!(info.name, DRIVER_NAME);
    assert_eq!(info.vendor_version, env!("CARGO_PKG_VERSION"));
    let probe = identity.probe(Request::new(Default::default())).await.unwrap().into_inner();
    assert_eq!(probe.ready, Some(false));
    let request = Request::new(Default::default());
    let offered = identity.get_plugin_capabilities(request).await.unwrap().into_inner();
    assert_eq!(offered.capabilities.len(), PLUGIN.len());
}

#[tokio::test]
async fn a_volume_is_made_once_and_is_where_its_group_is() {
    let f = fixture().await;
    let request = create("pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10", 10);
    let made = f.controller.create_volume(Request::new(request.clone())).await.unwrap().into_inner();
    let volume = made.volume.clone().unwrap();
    assert_eq!(volume.volume_id, format!("{}/{}", f.vg, request.name));
    assert_eq!(volume.capacity_bytes, 12 << 20, "whole extents");
    assert_eq!(
        volume.accessible_topology[0].segments,
        [(format!("{VG_KEY_PREFIX}/{}", f.vg), "true".to_owned())].into()
    );
    let again = f.controller.create_volume(Request::new(request.clone())).await.unwrap().into_inner();
    assert_eq!(again, made);

    let capabilities = vec![block()];
    let question = proto::ValidateVolumeCapabilitiesRequest {
        volume_id: volume.volume_id,
        volume_capabilities: capabilities.clone(),
        ..Default::default()
    };
    let answer = f.controller.validate_volume_capabilities(Request::new(question)).await.unwrap();
    assert_eq!(answer.into_inner().confirmed.unwrap().volume_capabilities, capabilities);
}

#[tokio::test]
async fn creation_is_refused_with_the_code_that_says_what_to_do_next() {
    let f = fixture().await;
    f.controller.create_volume(Request::new(create("taken", 8))).await.unwrap();
    type Change = fn(&mut proto::CreateVolumeRequest);
    let cases: [(Change, Code); 9] = [
        (|m| m.name.clear(), Code::InvalidArgument),
        (|m| m.volume_capabilities.clear(), Code::InvalidArgument),
        (|m| m.volume_content_source = Some(Default::default()), Code::InvalidArgument),
        (|m| m.mutable_parameters = [("a".to_owned(), "b".to_owned())].into(), Code::InvalidArgument),
        (|m| m.parameters = [("volumeGroup".to_owned(), "other".to_owned())].into(), Code::ResourceExhausted),
        (|m| *m = create("new", 400), Code::ResourceExhausted),
        (|m| *m = create("taken", 16), Code::AlreadyExists),
        (
            |m| m.capacity_range = Some(proto::CapacityRange { required_bytes: 9, limit_bytes: 8 }),
            Code::OutOfRange,
        ),
        (
            |m| {
                let place = proto::Topology { segments: [(NODE_KEY.to_owned(), "n2".to_owned())].into() };
                let requisite = vec![place];
                m.accessibility_requirements =
                    Some(proto::TopologyRequirement { requisite, ..Default::default() });
            },
            Code::ResourceExhausted,
        ),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        let mut request = create("new", 8);
        change(&mut request);
        assert_eq!(code(f.controller.create_volume(Request::new(request)).await), expected, "case {index}");
    }
}

#[tokio::test]
async fn ids_are_found_unknown_or_elsewhere_as_each_call_wants_it() {
    let f = fixture().await;
    let delete = |id: &str| {
        let request = proto::DeleteVolumeRequest { volume_id: id.to_owned(), ..Default::default() };
        f.controller.delete_volume(Request::new(request))
    };
    let validate = |id: &str| {
        f.controller.validate_volume_capabilities(Request::new(proto::ValidateVolumeCapabilitiesRequest {
            volume_id: id.to_owned(),
            volume_capabilities: vec![block()],
            ..Default::default()
        }))
    };
    let expand = |id: &str| {
        f.controller.controller_expand_volume(Request::new(proto::ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: Some(proto::CapacityRange { required_bytes: 1, limit_bytes: 0 }),
            ..Default::default()
        }))
    };
    let absent = format!("{}/pvc-absent", f.vg);
    for id in UNKNOWN.into_iter().chain([absent.as_str()]) {
        assert!(delete(id).await.is_ok(), "{id}");
        assert_eq!(code(validate(id).await), Code::NotFound, "{id}");
        assert_eq!(code(expand(id).await), Code::NotFound, "{id}");
    }
    for (id, expected) in [("", Code::InvalidArgument), (ELSEWHERE, Code::Unavailable)] {
        assert_eq!(code(delete(id).await), expected, "{id}");
        assert_eq!(code(validate(id).await), expected, "{id}");
        assert_eq!(code(expand(id).await), expected, "{id}");
    }
    let no_range = proto::ControllerExpandVolumeRequest { volume_id: absent, ..Default::default() };
    assert_eq!(
        code(f.controller.controller_expand_volume(Request::new(no_range)).await),
        Code::InvalidArgument
    );
    let no_capability =
        proto::ValidateVolumeCapabilitiesRequest { volume_id: ELSEWHERE.to_owned(), ..Default::default() };
    let refused = f.controller.validate_volume_capabilities(Request::new(no_capability)).await;
    assert_eq!(code(refused), Code::InvalidArgument);
}

#[tokio::test]
async fn capacity_leaves_the_reserve_out_and_is_none_elsewhere() {
    let f = fixture().await;
    let ask = async |parameter: Option<&str>, place: Option<(&str, &str)>| {
        let pair = |(key, value): (&str, &str)| [(key.to_owned(), value.to_owned())].into();
        let request = proto::GetCapacityRequest {
            parameters: parameter.map(|vg| pair(("volumeGroup", vg))).unwrap_or_default(),
            accessible_topology: place.map(|place| proto::Topology { segments: pair(place) }),
            ..Default::default()
        };
        let answer = f.controller.get_capacity(Request::new(request)).await.unwrap().into_inner();
        assert_eq!(answer.maximum_volume_size, Some(answer.available_capacity), "one group, one number");
        answer.available_capacity
    };
    let all = (90 * 4) << 20;
    assert_eq!(ask(None, None).await, all);
    assert_eq!(ask(Some("vg0"), Some((NODE_KEY, "n1"))).await, all);
    assert_eq!(ask(Some("vg1"), None).await, 0);
    assert_eq!(ask(None, Some((NODE_KEY, "n2"))).await, 0);
    assert_eq!(ask(None, Some(("zone", "z"))).await, 0);
    let nowhere = proto::GetCapacityRequest {
        accessible_topology: Some(proto::Topology::default()),
        ..Default::default()
    };
    let answer = f.controller.get_capacity(Request::new(nowhere)).await.unwrap().into_inner();
    assert_eq!((answer.available_capacity, answer.maximum_volume_size), (0, Some(0)));
}

#[tokio::test]
async fn a_node_says_its_name_and_one_key() {
    let f = fixture().await;
    let info = f.node.node_get_info(Request::new(Default::default())).await.unwrap().into_inner();
    assert_eq!(info.node_id, "n1");
    assert_eq!(info.accessible_topology.unwrap().segments, [(NODE_KEY.to_owned(), "n1".to_owned())].into());
    let request = Request::new(Default::default());
    let offered = f.node.node_get_capabilities(request).await.unwrap().into_inner();
    assert_eq!(offered.capabilities.len(), NODE.len());
    let request = Request::new(Default::default());
    let offered = f.controller.controller_get_capabilities(request).await.unwrap().into_inner();
    assert_eq!(offered.capabilities.len(), CONTROLLER.len());
}

/// The same call with each of these ids.
async fn for_ids<T, F>(call: impl Fn(String) -> F, expected: impl Fn(&str) -> Code)
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    for id in UNKNOWN.into_iter().chain(["", ELSEWHERE]) {
        assert_eq!(code(call(id.to_owned()).await), expected(id), "{id}");
    }
}

fn usual(id: &str) -> Code {
    match id {
        "" => Code::InvalidArgument,
        ELSEWHERE => Code::Unavailable,
        _ => Code::NotFound,
    }
}

#[tokio::test]
async fn calls_of_the_kubelet_name_a_volume_that_can_be() {
    let f = fixture().await;
    let stage = |volume_id| {
        f.node.node_stage_volume(Request::new(proto::NodeStageVolumeRequest {
            volume_id,
            staging_target_path: "/staging".to_owned(),
            volume_capability: Some(block()),
            ..Default::default()
        }))
    };
    for_ids(stage, usual).await;
    let publish = |volume_id| {
        f.node.node_publish_volume(Request::new(proto::NodePublishVolumeRequest {
            volume_id,
            staging_target_path: "/staging".to_owned(),
            target_path: "/target".to_owned(),
            volume_capability: Some(block()),
            ..Default::default()
        }))
    };
    for_ids(publish, usual).await;
    let expand = |volume_id| {
        let volume_path = "/target".to_owned();
        let request = proto::NodeExpandVolumeRequest { volume_id, volume_path, ..Default::default() };
        f.node.node_expand_volume(Request::new(request))
    };
    for_ids(expand, usual).await;
    let stats = |volume_id| {
        let volume_path = "/nowhere/at/all".to_owned();
        let request = proto::NodeGetVolumeStatsRequest { volume_id, volume_path, ..Default::default() };
        f.node.node_get_volume_stats(Request::new(request))
    };
    for_ids(stats, |id| if id.is_empty() { Code::InvalidArgument } else { Code::NotFound }).await;
}

#[tokio::test]
async fn calls_of_the_kubelet_have_the_fields_that_they_must_have() {
    let f = fixture().await;
    let id = || ELSEWHERE.to_owned();
    let good = proto::NodeStageVolumeRequest {
        volume_id: id(),
        staging_target_path: "/staging".to_owned(),
        volume_capability: Some(block()),
        ..Default::default()
    };
    for bad in [
        proto::NodeStageVolumeRequest { staging_target_path: String::new(), ..good.clone() },
        proto::NodeStageVolumeRequest { staging_target_path: "a/../b".to_owned(), ..good.clone() },
        proto::NodeStageVolumeRequest { volume_capability: None, ..good },
    ] {
        assert_eq!(code(f.node.node_stage_volume(Request::new(bad)).await), Code::InvalidArgument);
    }
    let good = proto::NodePublishVolumeRequest {
        volume_id: id(),
        staging_target_path: "/staging".to_owned(),
        target_path: "/target".to_owned(),
        volume_capability: Some(block()),
        ..Default::default()
    };
    for (bad, expected) in [
        (
            proto::NodePublishVolumeRequest { target_path: String::new(), ..good.clone() },
            Code::InvalidArgument,
        ),
        (
            proto::NodePublishVolumeRequest { target_path: "/".to_owned(), ..good.clone() },
            Code::InvalidArgument,
        ),
        (proto::NodePublishVolumeRequest { volume_capability: None, ..good.clone() }, Code::InvalidArgument),
        (
            proto::NodePublishVolumeRequest { staging_target_path: String::new(), ..good },
            Code::FailedPrecondition,
        ),
    ] {
        assert_eq!(code(f.node.node_publish_volume(Request::new(bad)).await), expected);
    }
    let no_path = proto::NodeUnstageVolumeRequest { volume_id: id(), ..Default::default() };
    assert_eq!(code(f.node.node_unstage_volume(Request::new(no_path)).await), Code::InvalidArgument);
    let no_path = proto::NodeUnpublishVolumeRequest { volume_id: id(), ..Default::default() };
    assert_eq!(code(f.node.node_unpublish_volume(Request::new(no_path)).await), Code::InvalidArgument);
    let no_path = proto::NodeGetVolumeStatsRequest { volume_id: id(), ..Default::default() };
    assert_eq!(code(f.node.node_get_volume_stats(Request::new(no_path)).await), Code::InvalidArgument);
    let no_path = proto::NodeExpandVolumeRequest { volume_id: id(), ..Default::default() };
    assert_eq!(code(f.node.node_expand_volume(Request::new(no_path)).await), Code::InvalidArgument);
    let strange = proto::NodeGetVolumeStatsRequest {
        volume_id: id(),
        volume_path: "some/path".to_owned(),
        ..Default::default()
    };
    assert_eq!(code(f.node.node_get_volume_stats(Request::new(strange)).await), Code::NotFound);
}

#[tokio::test]
async fn a_list_comes_in_pages_that_stay_true_while_volumes_come_and_go() {
    let f = fixture().await;
    let list = async |max_entries, starting_token: &str| {
        let request = proto::ListVolumesRequest { max_entries, starting_token: starting_token.to_owned() };
        f.controller.list_volumes(Request::new(request)).await.map(Response::into_inner)
    };
    let ids = |response: &proto::ListVolumesResponse| {
        let volumes = response.entries.iter().map(|entry| entry.volume.clone().unwrap());
        volumes.map(|volume| volume.volume_id).collect::<Vec<_>>()
    };
    let make = async |name: &str| {
        let made = f.controller.create_volume(Request::new(create(name, 8))).await.unwrap();
        made.into_inner().volume.unwrap().volume_id
    };
    assert_eq!(list(0, "").await.unwrap(), proto::ListVolumesResponse::default());
    let mut made = vec![make("a").await, make("b").await, make("c").await, make("d").await];
    made.sort();
    let all = list(0, "").await.unwrap();
    assert_eq!((ids(&all), all.next_token.as_str()), (made.clone(), ""));
    assert_eq!(all.entries[0].volume.clone().unwrap().capacity_bytes, 8 << 20);
    assert_eq!(list(4, "").await.unwrap(), all, "a full page that is the last one");

    let first = list(2, "").await.unwrap();
    assert_eq!(ids(&first), made[..2]);
    for volume_id in made.drain(1..3) {
        let request = proto::DeleteVolumeRequest { volume_id, ..Default::default() };
        f.controller.delete_volume(Request::new(request)).await.unwrap();
    }
    made.push(make("e").await);
    made.retain(|id| *id > first.next_token);
    made.sort();
    let second = list(2, &first.next_token).await.unwrap();
    assert_eq!((ids(&second), second.next_token.as_str()), (made, ""));
    assert_eq!(list(2, "fake").await.unwrap_err().code(), Code::Aborted);
    assert_eq!(list(-1, "").await.unwrap_err().code(), Code::InvalidArgument);
}
