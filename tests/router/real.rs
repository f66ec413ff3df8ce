//! The controller with `quarry node` as a process on real LVM; only the API server is one in memory.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use quarry::cluster::vg_label;
use quarry::proto::csi::v1 as csi;
use quarry::router::Pace;
use quarry::types::NODE_KEY;
use serde_json::json;
use tonic::Code;

use super::api_server::{ApiServer, token};
use super::process::{self, Process};
use super::rig::{self, Mounts, Replica, at_node, hasty, patient, until};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command, lock_group, make_group, report, sh};

const UID: &str = "3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
const OTHER: &str = "7d1a4c52-0b1e-4d0c-8a37-55f0c1a2b3d4";
const CLAIMS: &str = "/api/v1/namespaces/prod/persistentvolumeclaims";

async fn node(controller: SocketAddr, mounts: &Path) -> Driver {
    node_with(controller, mounts, &[]).await
}

async fn node_with(controller: SocketAddr, mounts: &Path, arguments: &[&str]) -> Driver {
    let mut node = Command::new(env!("CARGO_BIN_EXE_quarry"));
    node.args(["node", "--volume-group", "vg*", "--node-name", "n1", "--health-address", "off"]);
    node.args(arguments);
    node.arg(format!("--controller={controller}"));
    node.arg(format!("--ca-directory={}", mounts.display()));
    node.arg(format!("--token-file={}", mounts.join("token").display()));
    Driver::launch(node).await
}

fn mounts(server: &ApiServer) -> Mounts {
    server.put_node("n1", json!({}));
    Mounts::fresh(server, &token(server, "n1", 1, Duration::from_secs(3600)))
}

/// Boots a machine with the group [`VG`] on its disks and mounts that a host would see. The test's part is given
/// a folder to stage in.
fn boot(machine: lab::Machine, body: impl AsyncFnOnce(PathBuf)) {
    machine.boot(|| {
        make_group(VG, &lab::disks());
        let staging = driver::folder("staging");
        command("mount", &["--make-rshared", "/"]);
        driver::run(body(staging));
    });
}

/// A create for a claim, on the node or anywhere.
fn create(
    uid: &str,
    claim: &str,
    mib: i64,
    vg: Option<&str>,
    node: Option<&str>,
) -> csi::CreateVolumeRequest {
    let mut parameters = HashMap::from([
        ("csi.storage.k8s.io/pvc/name".to_owned(), claim.to_owned()),
        ("csi.storage.k8s.io/pvc/namespace".to_owned(), "prod".to_owned()),
        ("csi.storage.k8s.io/pv/name".to_owned(), format!("pvc-{uid}")),
    ]);
    parameters.extend(vg.map(|vg| ("volumeGroup".to_owned(), vg.to_owned())));
    csi::CreateVolumeRequest {
        volume_capabilities: vec![Mode::Ext4.capability()],
        parameters,
        ..rig::create(&format!("pvc-{uid}"), mib, node)
    }
}

/// The largest volume that is offered on the node, in bytes.
async fn offered(replica: &Replica, vg: &str, right: impl Fn(u64) -> bool) -> u64 {
    let room = async || replica.maximum_of(Some(vg), Some(at_node("n1"))).await.ok();
    let right = |room: &Option<i64>| room.is_some_and(|room| right(room.cast_unsigned()));
    until("what is offered", room, right).await.unwrap().cast_unsigned()
}

fn free(vg: &str) -> u64 {
    report("vgs", "vg_free", vg)[0].parse().unwrap()
}

/// What the kubelet learns when the driver registers.
async fn registered(node: &Driver) -> HashMap<String, String> {
    let mut client = node.client().await;
    let info = client.node.node_get_info(csi::NodeGetInfoRequest {}).await.unwrap().into_inner();
    info.accessible_topology.unwrap().segments
}

#[test]
fn groups_come_and_are_renamed_under_a_node_that_stays_the_same_to_the_kubelet() {
    lab::Machine::new().disk("1G").boot(|| {
        let staging = driver::folder("staging");
        command("mount", &["--make-rshared", "/"]);
        driver::run(async {
            let server = ApiServer::new();
            let replica = Replica::start(&server, patient()).await;
            let mounts = mounts(&server);
            let process = node(replica.address, mounts.path()).await;
            let known = HashMap::from([(NODE_KEY.to_owned(), "n1".to_owned())]);

            // No group at all: it registers, and has no room.
            assert_eq!(registered(&process).await, known);
            offered(&replica, VG, |room| room == 0).await;
            assert!(server.labels("n1").is_empty());
            let refusal = replica.create(create(UID, "db", 8, Some(VG), Some("n1"))).await;
            rig::refused(refusal, Code::ResourceExhausted, VG);
            assert_eq!(replica.maximum_of(Some(VG), Some(at_node("n1"))).await.unwrap(), 0);

            make_group(VG, &lab::disks());
            let label = vg_label(&report("vgs", "vg_uuid", VG)[0].parse().unwrap());
            assert_eq!(offered(&replica, VG, |room| room > 0).await, free(VG));
            server.until("the label", |server| server.labels("n1") == [label.clone()]).await;
            assert_eq!(registered(&process).await, known);
            let volume = replica.create(create(UID, "db", 100, Some(VG), Some("n1"))).await.unwrap();
            process.client().await.stage(&volume.volume_id, &staging, Mode::Ext4).await.unwrap();

            command("vgrename", &[VG, "vg1"]);
            assert_eq!(offered(&replica, "vg1", |room| room > 0).await, free("vg1"));
            offered(&replica, VG, |room| room == 0).await;
            assert_eq!(registered(&process).await, known);
            assert_eq!(server.labels("n1"), std::slice::from_ref(&label), "a place has no name in it");
            assert_eq!(replica.expand(&volume.volume_id, 200 << 20).await.unwrap(), 200 << 20);
            let refusal = replica.create(create(OTHER, "web", 8, Some(VG), Some("n1"))).await;
            rig::refused(refusal, Code::ResourceExhausted, VG);
            assert_eq!(replica.maximum_of(Some(VG), Some(at_node("n1"))).await.unwrap(), 0);

            // A new process under a volume that is mounted.
            assert!(process.stop().success());
            let process = node(replica.address, mounts.path()).await;
            assert_eq!(registered(&process).await, known);
            offered(&replica, "vg1", |room| room > 0).await;
            let again = replica.create(create(UID, "db", 100, Some("vg1"), Some("n1"))).await.unwrap();
            assert_eq!(again.volume_id, volume.volume_id);
            process.client().await.unstage(&volume.volume_id, &staging).await.unwrap();
            replica.delete(&volume.volume_id).await.unwrap();
            assert!(report("lvs", "lv_name", "vg1").is_empty());
            assert_eq!(server.labels("n1"), [label]);
        });
    });
}

#[test]
fn a_group_that_is_filled_behind_the_drivers_back_is_full_at_the_moment_of_the_refusal() {
    boot(lab::Machine::new().disk("1G"), async |_| {
        let server = ApiServer::new();
        let replica = Replica::start(&server, hasty()).await;
        let mounts = mounts(&server);
        let _node = node(replica.address, mounts.path()).await;
        offered(&replica, VG, |room| room > 500 * MIB).await;
        command("lvcreate", &["-y", "-n", "theirs", "-l", "90%FREE", VG]);
        for node in [Some("n1"), None] {
            let refusal = replica.create(create(UID, "db", 500, Some(VG), node)).await;
            rig::refused(refusal, Code::ResourceExhausted, "500 MiB");
            for place in [Some(at_node("n1")), None] {
                let room = replica.maximum_of(Some(VG), place.clone()).await.unwrap();
                assert!(room < 500 << 20, "{room} in {place:?}");
            }
        }
        offered(&replica, VG, |room| room == free(VG)).await;
        command("lvremove", &["-y", &format!("{VG}/theirs")]);
        offered(&replica, VG, |room| room == free(VG)).await;
        replica.create(create(UID, "db", 500, Some(VG), Some("n1"))).await.unwrap();
    });
}

/// Demands that nothing is made on the node for that reason, and that its capacity says so at that instant.
async fn takes_nothing(replica: &Replica, reason: &str) {
    let refusal = replica.create(create(UID, "db", 64, Some(VG), Some("n1"))).await;
    let room = replica.maximum_of(Some(VG), Some(at_node("n1"))).await.unwrap();
    rig::refused(refusal, Code::ResourceExhausted, reason);
    assert!(room < 64 << 20, "{room}");
    for vg in [Some(VG), None] {
        let refusal = replica.create(create(UID, "db", 64, vg, None)).await;
        let room = replica.maximum_of(vg, None).await.unwrap();
        rig::refused(refusal, Code::ResourceExhausted, "64 MiB");
        assert!(room < 64 << 20, "{room} for {vg:?}");
    }
}

#[test]
fn a_group_that_is_not_to_be_used_is_offered_to_nobody_at_the_moment_of_the_refusal() {
    boot(lab::Machine::new().disk("256M").disk("256M"), async |_| {
        let server = ApiServer::new();
        let replica = Replica::start(&server, hasty()).await;
        let mounts = mounts(&server);
        let _node = node(replica.address, mounts.path()).await;
        let disk = lab::disks().remove(1).display().to_string();
        for (befalls, reason, ends) in [
            (format!("vgexport -q {VG}"), "it is exported", format!("vgimport -q {VG}")),
            (
                format!("dd if={disk} of=/hidden bs=1M count=1 status=none; wipefs -q -a {disk}"),
                "missing",
                format!("dd if=/hidden of={disk} conv=fsync status=none; udevadm trigger {disk} || true"),
            ),
        ] {
            offered(&replica, VG, |room| room > 64 * MIB).await;
            sh(&befalls);
            takes_nothing(&replica, reason).await;
            sh(&ends);
        }
        offered(&replica, VG, |room| room > 64 * MIB).await;
        replica.create(create(UID, "db", 64, Some(VG), Some("n1"))).await.unwrap();
    });
}

#[test]
fn a_group_that_is_stuck_is_offered_to_nobody_at_the_moment_of_the_refusal() {
    boot(lab::Machine::new().disk("512M"), async |_| {
        let server = ApiServer::new();
        let replica = Replica::start(&server, hasty()).await;
        let mounts = mounts(&server);
        let _node = node_with(replica.address, mounts.path(), &["--lvm-patience", "2s"]).await;
        offered(&replica, VG, |room| room > 64 * MIB).await;
        let held = lock_group();
        let mut sent = tonic::Request::new(create(OTHER, "web", 64, Some(VG), Some("n1")));
        sent.set_timeout(Duration::from_secs(6));
        rig::refused(replica.client().create_volume(sent).await, Code::Aborted, "the operation goes on");
        takes_nothing(&replica, "is stuck").await;
        drop(held);
        offered(&replica, VG, |room| room > 64 * MIB).await;
        for (uid, claim) in [(OTHER, "web"), (UID, "db")] {
            let again = async || replica.create(create(uid, claim, 64, Some(VG), Some("n1"))).await.ok();
            until("it is made", again, Option::is_some).await;
        }
        assert_eq!(report("lvs", "lv_name", VG).len(), 2);
    });
}

#[test]
fn volumes_are_found_by_name_and_orphans_by_their_claims() {
    boot(lab::Machine::new().disk("1G"), async |staging| {
        let server = ApiServer::new();
        for (name, uid) in [("db", UID), ("web", OTHER)] {
            server.put(CLAIMS, json!({"metadata": {"name": name, "uid": uid}, "spec": {}}));
        }
        let pace = Pace { orphans: Duration::from_millis(200), orphan_age: Duration::ZERO, ..hasty() };
        let start = async |name| {
            let collect = |settings: &mut quarry::config::ControllerSettings| {
                settings.collect_orphans = Some(true);
            };
            Replica::start_as(name, server.cluster(), pace.clone(), collect).await
        };
        let first = start("first").await;
        let mounts = mounts(&server);
        let process = node(first.address, mounts.path()).await;
        offered(&first, VG, |room| room > 0).await;
        server.until("the cluster is known", |server| server.asked_for("GET", "kube-system") > 0).await;
        let used = first.create(create(OTHER, "web", 50, None, None)).await.unwrap();
        let volume = first.create(create(UID, "db", 50, None, None)).await.unwrap();
        let mut kubelet = process.client().await;
        kubelet.stage(&used.volume_id, &staging, Mode::Ext4).await.unwrap();
        kubelet.unstage(&used.volume_id, &staging).await.unwrap();
        process.stop();
        first.stop().await;

        // A controller that knows nothing of it finds the volume by asking.
        let second = start("second").await;
        let _process = node(second.address, mounts.path()).await;
        offered(&second, VG, |room| room > 0).await;
        assert_eq!(second.create(create(UID, "db", 50, None, None)).await.unwrap(), volume);
        assert_eq!(report("lvs", "lv_name", VG).len(), 2);

        // Both claims go: one volume was never used.
        server.delete(CLAIMS, "web");
        server.delete(CLAIMS, "db");
        server
            .until("the orphan's end", |server| {
                server.events("n1").iter().any(|(reason, _)| reason == "OrphanRemoved")
            })
            .await;
        let left = report("lvs", "lv_name", VG);
        assert_eq!(left, [used.volume_id.split_once('/').unwrap().1]);
        assert!(server.events("n1").iter().all(|(_, note)| !note.contains(OTHER)));
        second.delete(&used.volume_id).await.unwrap();
    });
}

#[test]
fn both_roles_as_processes_make_grow_and_remove_a_volume() {
    boot(lab::Machine::new().disk("1G"), async |staging| {
        let (server, dir) = (ApiServer::new(), tempfile::tempdir().unwrap());
        process::kubeconfig(dir.path(), &format!("http://{}", server.listen().await));
        let link: SocketAddr = "127.0.0.1:9443".parse().unwrap();
        let mut controller = process::command(dir.path(), link);
        let _controller = Process(controller.stderr(Stdio::inherit()).spawn().unwrap());
        let mounts = mounts(&server);
        let node = node(link, mounts.path()).await;
        let socket = dir.path().join("csi.sock");
        let connect = async || Client::connect(&socket).await;
        let mut sidecar = until("the controller serves", connect, Option::is_some).await.unwrap();
        let request = create(UID, "db", 100, Some(VG), Some("n1"));
        let made = async || sidecar.clone().create_with(request.clone()).await.ok();
        let volume = until("the volume", made, Option::is_some).await.unwrap();
        let place = volume.accessible_topology[0].segments.keys().next().unwrap();
        assert_eq!(server.labels("n1"), std::slice::from_ref(place));
        let mut kubelet = node.client().await;
        kubelet.stage(&volume.volume_id, &staging, Mode::Ext4).await.unwrap();
        let size = sidecar.expand(&volume.volume_id, 200 * MIB, Mode::Ext4).await.unwrap();
        assert_eq!(size, 200 * MIB);
        kubelet.unstage(&volume.volume_id, &staging).await.unwrap();
        sidecar.delete(&volume.volume_id).await.unwrap();
        assert!(report("lvs", "lv_name", VG).is_empty());
        assert!(node.stop().success());
    });
}

#[test]
fn a_volume_that_a_late_call_makes_once_more_is_told_of_with_its_claim() {
    boot(lab::Machine::new().disk("1G"), async |_| {
        let server = ApiServer::new();
        server.put(CLAIMS, json!({"metadata": {"name": "db", "uid": UID}, "spec": {}}));
        let pace = Pace { orphans: Duration::from_millis(200), orphan_age: Duration::ZERO, ..hasty() };
        let replica = Replica::start(&server, pace).await;
        let mounts = mounts(&server);
        let _node = node(replica.address, mounts.path()).await;
        offered(&replica, VG, |room| room > 0).await;
        let request = || create(UID, "db", 50, Some(VG), Some("n1"));
        let volume = replica.create(request()).await.unwrap();
        server.delete(CLAIMS, "db");
        replica.delete(&volume.volume_id).await.unwrap();
        assert_eq!(replica.create(request()).await.unwrap(), volume);
        let told =
            |server: &ApiServer| server.events("n1").iter().any(|(reason, _)| reason == "OrphanedVolume");
        server.until("it is told of", told).await;
        let (_, note) =
            server.events("n1").into_iter().find(|(reason, _)| reason == "OrphanedVolume").unwrap();
        assert!(note.contains(&volume.volume_id) && note.contains("claim prod/db is gone"), "{note}");
        assert_eq!(report("lvs", "lv_name", VG), [format!("pvc-{UID}")], "it is told of and left alone");
        replica.delete(&volume.volume_id).await.unwrap();
    });
}
