//! A real API server, alone in a network of its own, with nothing beside it: objects lie in it as they were put.

use std::future::Future;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::Client;
use kube::config::{AuthInfo, Config};
use tempfile::TempDir;

use super::tools;

/// Set in the process that is in the network of its own.
const INSIDE: &str = "QUARRY_TEST_ALONE";
/// An address that is nobody's, and for the API server not loopback: it insists.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const TOKEN: &str = "admin-of-this-test";
const READY_LIMIT: Duration = Duration::from_secs(120);

/// Runs the body of the test of that name in a process with a network and a process table of its own: what it
/// starts is seen by nobody and ends with it, however it ends.
pub(super) fn alone(test: &str, body: impl Future<Output = ()>) {
    if std::env::var_os(INSIDE).is_none() {
        // Before it is alone, since Go's modules come from outside.
        let _ = tools::cluster("kube-apiserver");
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    tools::output(Command::new("ip").args(["link", "set", "lo", "up"]));
    tools::output(Command::new("ip").args(["addr", "add", &format!("{ADDRESS}/32"), "dev", "lo"]));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(body);
}

/// The API server and its store. Both end when this is dropped.
pub(super) struct Server {
    programs: Vec<Child>,
    folder: TempDir,
}

impl Server {
    /// Starts it, and returns when it answers.
    pub(super) async fn start() -> Self {
        let mut server = Self { programs: Vec::new(), folder: tempfile::tempdir().unwrap() };
        let folder = server.folder.path().to_owned();
        server.run(
            "etcd",
            &[
                "--listen-client-urls=http://127.0.0.1:2379",
                "--advertise-client-urls=http://127.0.0.1:2379",
                "--listen-peer-urls=http://127.0.0.1:2380",
                "--unsafe-no-fsync",
                &format!("--data-dir={}", folder.join("etcd").display()),
            ],
        );
        let key = write(&folder, "accounts.key", &rcgen::KeyPair::generate().unwrap().serialize_pem());
        let tokens = write(&folder, "tokens.csv", &format!("{TOKEN},admin,admin,system:masters\n"));
        server.run(
            "kube-apiserver",
            &[
                "--etcd-servers=http://127.0.0.1:2379",
                "--bind-address=127.0.0.1",
                &format!("--advertise-address={ADDRESS}"),
                "--service-cluster-ip-range=198.51.100.0/24",
                "--endpoint-reconciler-type=none",
                "--service-account-issuer=https://kubernetes.default.svc",
                &format!("--service-account-key-file={key}"),
                &format!("--service-account-signing-key-file={key}"),
                &format!("--token-auth-file={tokens}"),
                "--authorization-mode=Node,RBAC",
                "--allow-privileged",
                &format!("--cert-dir={}", folder.display()),
            ],
        );
        server.wait().await;
        server
    }

    fn run(&mut self, name: &str, arguments: &[&str]) {
        let log = std::fs::File::create(self.log(name)).unwrap();
        let mut command = Command::new(tools::cluster(name));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.programs.push(command.spawn().unwrap());
    }

    fn log(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name).with_extension("log")
    }

    async fn wait(&mut self) {
        let (client, start) = (self.admin(), Instant::now());
        // Until all that the server itself puts in is there, such as priority classes.
        let ready = || http::Request::get("/readyz").body(Vec::new()).unwrap();
        while !client.request_text(ready()).await.is_ok_and(|text| text == "ok") {
            let ended = self.programs.iter_mut().any(|child| child.try_wait().unwrap().is_some());
            assert!(!ended && start.elapsed() < READY_LIMIT, "no API server:\n{}", self.last_words());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn last_words(&self) -> String {
        let logs = ["etcd", "kube-apiserver"].map(|name| std::fs::read_to_string(self.log(name)).unwrap());
        let tail =
            |log: &String| log.lines().rev().take(15).map(|line| format!("{line}\n")).collect::<String>();
        logs.iter().map(tail).collect()
    }

    /// A client with all rights.
    pub(super) fn admin(&self) -> Client {
        client(None)
    }

    /// A client that is a service account.
    pub(super) fn account(&self, namespace: &str, name: &str) -> Client {
        client(Some(format!("system:serviceaccount:{namespace}:{name}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.programs {
            drop(child.kill().and_then(|()| child.wait()));
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn client(impersonate: Option<String>) -> Client {
    let mut config = Config::new("https://127.0.0.1:6443".parse().unwrap());
    // Its certificate is its own, and nobody else is in this network.
    config.accept_invalid_certs = true;
    config.auth_info = AuthInfo { token: Some(TOKEN.to_owned().into()), impersonate, ..AuthInfo::default() };
    Client::try_from(config).unwrap()
}
