//! `quarry node` as a process, on real LVM.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use quarry::link::{Session, Tuning, generation};
use quarry::proto::csi::v1::controller_client::ControllerClient;
use quarry::proto::csi::v1::{CapacityRange, CreateVolumeRequest, DeleteVolumeRequest};
use quarry::types::{Bytes, NodeState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;

use super::controller::{Controller, ended};
use super::node::mounts;
use super::soon;
use crate::driver::{self, Driver, MIB, Mode, VG, command, make_group, report};

const HEALTH: &str = "127.0.0.1:9809";

fn node(controller: SocketAddr, mounts: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
    command.args(["node", "--volume-group", VG, "--node-name", "n1", "--health-address", HEALTH]);
    command.arg(format!("--controller={controller}"));
    command.arg(format!("--ca-directory={}", mounts.display()));
    command.arg(format!("--token-file={}", mounts.join("token").display()));
    command
}

fn create(name: &str, size: u64) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        volume_capabilities: vec![Mode::Ext4.capability()],
        capacity_range: Some(CapacityRange { required_bytes: size.try_into().unwrap(), limit_bytes: 0 }),
        ..Default::default()
    }
}

async fn state(session: &Session, right: impl Fn(&NodeState) -> bool) -> NodeState {
    let mut states = session.states();
    let right = |state: &Option<NodeState>| state.as_ref().is_some_and(&right);
    soon("a state", states.wait_for(right)).await.unwrap().clone().unwrap()
}

async fn probe() -> String {
    let mut stream = TcpStream::connect(HEALTH).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon("an answer to a probe", stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[test]
fn a_node_is_called_by_the_kubelet_and_by_its_controllers() {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &lab::disks());
        let kubelet = driver::folder("staging");
        command("mount", &["--make-rshared", "/"]);
        driver::run(async {
            let mut controller = Controller::start(Tuning::default()).await;
            let dir = mounts("token-n1", Some(controller.authority.pem()));
            let process = Driver::launch(node(controller.address, dir.path())).await;
            let session = controller.session().await;
            assert!(probe().await.starts_with("HTTP/1.1 200"));

            let free: u64 = report("vgs", "vg_free", VG)[0].parse().unwrap();
            let vg = report("vgs", "vg_uuid", VG).remove(0);
            let first = state(&session, |state| state.groups.iter().any(|g| g.trouble.is_none())).await;
            assert_eq!(
                (first.groups[0].uuid.as_str(), first.groups[0].maximum),
                (vg.as_str(), Bytes::new(free))
            );

            // Made by a controller, used by the kubelet, removed by a controller.
            let mut link = ControllerClient::new(session.channel());
            let volume =
                link.create_volume(create("pvc-1", 100 * MIB)).await.unwrap().into_inner().volume.unwrap();
            assert!(volume.volume_id.starts_with(&vg));
            let mut local = process.client().await;
            local.stage(&volume.volume_id, &kubelet, Mode::Ext4).await.unwrap();
            assert_eq!(driver::mounts_at(&kubelet), 1);
            let request = DeleteVolumeRequest { volume_id: volume.volume_id.clone(), ..Default::default() };
            let status = link.delete_volume(request.clone()).await.unwrap_err();
            assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
            local.unstage(&volume.volume_id, &kubelet).await.unwrap();

            // Who is refused knows which states are older, and a newer one has less than was asked for.
            let status = link.create_volume(create("pvc-2", free)).await.unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
            let refused = generation(&status).unwrap();
            let newer = state(&session, |state| state.generation > refused).await;
            assert_eq!(newer.groups[0].maximum, Bytes::new(free - 100 * MIB));
            link.delete_volume(request).await.unwrap();
            state(&session, |state| state.groups[0].maximum == Bytes::new(free)).await;

            // By somebody else: no event tells of it.
            command("lvcreate", &["-y", "-n", "theirs", "-L", "100M", VG]);
            state(&session, |state| state.groups[0].maximum == Bytes::new(free - 100 * MIB)).await;

            assert!(process.stop().success());
            ended(&session).await;
        });
    });
}

#[test]
fn a_node_whose_mounts_nobody_sees_says_what_to_set() {
    lab::Machine::new().boot(|| {
        driver::folder("staging");
        command("mount", &["--make-rprivate", "/"]);
        let output = node("127.0.0.1:1".parse().unwrap(), Path::new("/nowhere")).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("mounts below /var/lib/kubelet are not seen by the host"), "{message}");
        assert!(message.contains("mountPropagation: Bidirectional"), "{message}");
    });
}
