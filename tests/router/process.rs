//! The controller as a process, which talks to an API server over a real socket.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quarry::proto::csi::v1::identity_client::IdentityClient;
use quarry::proto::csi::v1::{GetPluginInfoRequest, ProbeRequest};
use tonic::transport::Endpoint;

use super::api_server::ApiServer;
use super::rig::until;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/quarry/leases";

/// How many files a controller may have open before it asks for more: fewer than any machine lets it ask for.
/// Container runtimes do likewise, with 1024.
const FILES: u64 = 512;

/// A free port of loopback.
const ANY_PORT: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A controller that serves on `csi.sock` in that folder, and finds the API server by `kubeconfig` there.
pub(super) fn command(dir: &std::path::Path, link: SocketAddr) -> Command {
    command_of(env!("CARGO_BIN_EXE_quarry"), dir, link, ANY_PORT)
}

/// The same of that driver, which shows its metrics at `health`.
pub(crate) fn command_of(
    driver: &str,
    dir: &std::path::Path,
    link: SocketAddr,
    health: SocketAddr,
) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("ulimit -S -n {FILES} && exec \"$0\" \"$@\""), driver, "controller"])
        .args([format!("--link-address={link}"), format!("--health-address={health}")])
        .arg("--grace-period=20s")
        .env_clear()
        .env("CSI_ENDPOINT", dir.join("csi.sock"))
        .env("POD_NAMESPACE", "quarry")
        .env("POD_NAME", "controller-1")
        .env("KUBECONFIG", dir.join("kubeconfig"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn kubeconfig(dir: &std::path::Path, server: &str) {
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    std::fs::write(dir.join("kubeconfig"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_serves_until_it_is_asked_to_end_and_leaves_nothing_behind() {
    let (server, dir) = (ApiServer::new(), tempfile::tempdir().unwrap());
    kubeconfig(dir.path(), &format!("http://{}", server.listen().await));
    let mut process = Process(command(dir.path(), ANY_PORT).spawn().unwrap());
    let socket = Endpoint::try_from(format!("unix://{}", dir.path().join("csi.sock").display())).unwrap();
    let ready = async || {
        let channel = socket.connect().await.ok()?;
        let probe = IdentityClient::new(channel.clone()).probe(ProbeRequest {}).await.ok()?;
        probe.into_inner().ready.filter(|ready| *ready)?;
        let info = IdentityClient::new(channel).get_plugin_info(GetPluginInfoRequest {}).await;
        info.ok().map(|info| info.into_inner().name)
    };
    until("it is ready", ready, |name| name.as_deref() == Some("lvm.csi.quarry")).await;
    server.until("it leads", |server| server.get(LEASES, "quarry-controller").is_some()).await;
    server
        .until("it has recorded its links", |server| server.get(LEASES, "controller-1.links").is_some())
        .await;
    let [soft, hard] = open_files(process.0.id());
    assert!(soft == hard && soft > FILES, "it may have {soft} files open, and could have {hard}");
    kill(Pid::from_raw(process.0.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || {
        let status = process.0.wait().unwrap();
        let mut log = String::new();
        std::io::Read::read_to_string(&mut process.0.stderr.take().unwrap(), &mut log).unwrap();
        (status, log)
    });
    let (status, log) = tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap().unwrap();
    assert!(status.success(), "{log}");
    assert!(log.contains("leadership changed") && log.contains("asked to stop"), "{log}");
    assert!(!log.contains("PRIVATE KEY"), "{log}");
    assert_eq!(server.get(LEASES, "quarry-controller").unwrap()["spec"]["holderIdentity"], "");
    assert!(server.get(LEASES, "controller-1.links").is_none());
    assert!(!dir.path().join("csi.sock").exists());
    let agent = format!("quarry/{}", env!("CARGO_PKG_VERSION"));
    assert!(server.asked().iter().all(|asked| asked.agent == agent), "{:?}", server.asked());
}

/// How many files a process may have open, and how many it may ask for (proc(5)).
fn open_files(pid: u32) -> [u64; 2] {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap_or(u64::MAX));
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

#[test]
fn without_a_cluster_it_says_what_it_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path(), ANY_PORT).env_remove("KUBECONFIG").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("nothing says where the API server is"), "{message}");
}

#[test]
fn what_it_cannot_do_without_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for (variable, words) in [("POD_NAMESPACE", "give --namespace"), ("POD_NAME", "give --pod-name")] {
        let output = command(dir.path(), ANY_PORT).env_remove(variable).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{message}");
        assert!(message.contains(words), "{message}");
    }
}
