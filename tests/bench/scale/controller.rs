use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quarry::proto::csi::v1 as csi;
use quarry::proto::csi::v1::controller_client::ControllerClient;
use quarry::proto::csi::v1::identity_client::IdentityClient;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::nodes::{Nodes, Simulated, VG};
use crate::bench::ours::driver;
use crate::bench::processes;
use crate::metrics::Scrape;
use crate::router::{ApiServer, Process, at_node, command_of, kubeconfig};

/// Nothing is waited for longer than this, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(1800);

/// How often something is asked that cannot be waited for otherwise.
const PACE: Duration = Duration::from_millis(100);

/// Waits for something that must come.
pub(super) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// A controller as a process.
pub(super) struct Controller {
    process: Process,
    client: ControllerClient<Channel>,
    /// Where nodes connect to.
    pub(super) link: SocketAddr,
    place: Place,
}

/// Where a controller is, and its successor.
pub(super) struct Place {
    folder: tempfile::TempDir,
    log: PathBuf,
    link: SocketAddr,
    health: SocketAddr,
}

impl Controller {
    /// Starts one, and waits until nodes can be linked to it.
    pub(super) async fn start(server: &ApiServer, log: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        kubeconfig(folder.path(), &format!("http://{}", server.listen().await));
        File::create(log).unwrap();
        let [link, health] = free_addresses();
        Place { folder, log: log.to_owned(), link, health }.start_again().await
    }

    /// Ends it with no warning.
    pub(super) fn killed(self) -> Place {
        self.place
    }

    /// Waits until so many nodes are linked, and gives back how many are.
    pub(super) async fn linked(&self, count: usize) -> f64 {
        let end = Instant::now() + PATIENCE;
        loop {
            let linked = Scrape::of(self.place.health).await.value("quarry_nodes_connected", &[]);
            if linked >= f64::from(u32::try_from(count).unwrap()) {
                return linked;
            }
            assert!(Instant::now() < end, "{linked} of {count} nodes are linked after {PATIENCE:?}");
            sleep(PACE).await;
        }
    }

    /// Waits until the state of each node has come.
    pub(super) async fn knows(&self, nodes: &Nodes) {
        let end = Instant::now() + PATIENCE;
        for node in nodes.all() {
            let mut answer = self.capacity(node).await;
            while !matches!(answer, Ok(1..)) {
                assert!(Instant::now() < end, "{}: {answer:?} after {PATIENCE:?}", node.name);
                sleep(PACE).await;
                answer = self.capacity(node).await;
            }
        }
    }

    /// The room of a node, as csi-provisioner asks for it.
    pub(super) async fn capacity(&self, node: &Simulated) -> Result<i64, Status> {
        let request = csi::GetCapacityRequest {
            parameters: [("volumeGroup".to_owned(), VG.to_owned())].into(),
            accessible_topology: Some(at_node(&node.name)),
            ..Default::default()
        };
        Ok(self.client.clone().get_capacity(request).await?.into_inner().available_capacity)
    }

    /// Has the node delete a volume, which it does not have.
    pub(super) async fn delete(&self, node: &Simulated) -> Result<(), Status> {
        let volume_id = format!("{}/pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10", node.vg);
        let request = csi::DeleteVolumeRequest { volume_id, ..Default::default() };
        self.client.clone().delete_volume(request).await.map(drop)
    }

    /// For how long it has worked, on all cores together.
    pub(super) fn cpu(&self) -> Duration {
        processes::cpu(self.process.0.id())
    }

    pub(super) fn anonymous_mib(&self) -> f64 {
        processes::anonymous_mib(self.process.0.id())
    }
}

impl Place {
    /// Starts a controller there, and waits until nodes can be linked to it.
    pub(super) async fn start_again(self) -> Controller {
        let log = File::options().append(true).open(&self.log).unwrap();
        let mut command = command_of(&driver(), self.folder.path(), self.link, self.health);
        let mut process = Process(command.stderr(log).spawn().unwrap());
        let end = Instant::now() + PATIENCE;
        let client = loop {
            if let Some(client) = self.ready().await {
                break client;
            }
            let ended = process.0.try_wait().unwrap();
            assert!(ended.is_none(), "the controller has ended: {}", self.log_text());
            assert!(Instant::now() < end, "not ready after {PATIENCE:?}: {}", self.log_text());
            sleep(PACE).await;
        };
        Controller { process, client, link: self.link, place: self }
    }

    async fn ready(&self) -> Option<ControllerClient<Channel>> {
        TcpStream::connect(self.health).await.ok()?;
        let socket = format!("unix://{}", self.folder.path().join("csi.sock").display());
        let channel = Endpoint::try_from(socket).unwrap().connect().await.ok()?;
        let answer = IdentityClient::new(channel.clone()).probe(csi::ProbeRequest {}).await.ok()?;
        answer.into_inner().ready?.then(|| ControllerClient::new(channel))
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// Two addresses of loopback that nobody has. None of them is among those from which connections are made: while no
/// controller listens, a node could take its port, or even connect to itself.
fn free_addresses() -> [SocketAddr; 2] {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
    let addresses = (1024..first).rev().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    [free.next(), free.next()].map(|address| address.expect("no port is free"))
}
