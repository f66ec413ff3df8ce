use std::net::SocketAddr;
use std::path::PathBuf;

use quarry::app::{Doors, controller};
use quarry::cluster::Cluster;
use quarry::config::{ControllerConfig, ControllerSettings};
use quarry::link::{Tuning, Versions};
use quarry::proto::csi::v1 as csi;
use quarry::proto::csi::v1::controller_client::ControllerClient;
use quarry::router::Pace;
use quarry::server::Drained;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::{brisk, hasty, soon};
use crate::router::api_server::{ACCOUNT, ApiServer, NAMESPACE};

/// A running controller.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    pub(crate) health: SocketAddr,
    dir: tempfile::TempDir,
    client: ControllerClient<Channel>,
    stop: CancellationToken,
    running: JoinHandle<Drained>,
    _stopped_at_the_end: DropGuard,
}

type Answer<T> = Result<T, Status>;

impl Replica {
    pub(crate) async fn start(server: &ApiServer, pace: Pace) -> Self {
        Self::start_as("replica-1", server.cluster(), pace, |_| {}).await
    }

    /// One that speaks these versions of the protocol.
    pub(crate) async fn start_speaking(server: &ApiServer, versions: Versions) -> Self {
        let tuning = Tuning { versions, ..brisk() };
        Self::start_tuned("replica-1", server.cluster(), (tuning, hasty()), |_| {}).await
    }

    /// With another name, cluster or settings.
    pub(crate) async fn start_as(
        name: &str,
        cluster: Cluster,
        pace: Pace,
        change: impl FnOnce(&mut ControllerSettings),
    ) -> Self {
        Self::start_tuned(name, cluster, (brisk(), pace), change).await
    }

    async fn start_tuned(
        name: &str,
        cluster: Cluster,
        (tuning, pace): (Tuning, Pace),
        change: impl FnOnce(&mut ControllerSettings),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = ControllerSettings {
            endpoint: Some(socket(&dir).to_str().unwrap().to_owned()),
            link_address: Some("127.0.0.1:0".into()),
            health_address: Some("127.0.0.1:0".into()),
            namespace: Some(NAMESPACE.into()),
            node_service_account: Some(ACCOUNT.into()),
            pod_name: Some(name.into()),
            ..ControllerSettings::default()
        };
        change(&mut settings);
        let config = ControllerConfig::resolve(settings).unwrap();
        let doors = Doors::open(&config).await.unwrap();
        let (address, health) = (doors.links.local_addr().unwrap(), doors.health.address().unwrap());
        let stop = CancellationToken::new();
        let running = controller(config, cluster, doors, tuning, pace, stop.clone());
        let running = tokio::spawn(async { running.await.unwrap() });
        let endpoint = Endpoint::try_from(format!("unix://{}", socket(&dir).display())).unwrap();
        let client =
            ControllerClient::new(soon("the controller's socket", endpoint.connect()).await.unwrap());
        let _stopped_at_the_end = stop.clone().drop_guard();
        Self { address, health, dir, client, stop, running, _stopped_at_the_end }
    }

    pub(crate) fn client(&self) -> ControllerClient<Channel> {
        self.client.clone()
    }

    /// As the sidecars find it.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.dir)
    }

    pub(crate) async fn stop(self) -> Drained {
        self.stop.cancel();
        soon("the controller's end", self.running).await.unwrap()
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn create(&self, request: csi::CreateVolumeRequest) -> Answer<csi::Volume> {
        let answer = soon("an answer", self.client().create_volume(request)).await?;
        Ok(answer.into_inner().volume.unwrap())
    }

    pub(crate) async fn delete(&self, id: &str) -> Answer<()> {
        let request = csi::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
        soon("an answer", self.client().delete_volume(request)).await.map(drop)
    }

    pub(crate) async fn expand(&self, id: &str, bytes: i64) -> Answer<i64> {
        let request = csi::ControllerExpandVolumeRequest {
            volume_id: id.into(),
            capacity_range: Some(csi::CapacityRange { required_bytes: bytes, limit_bytes: 0 }),
            ..Default::default()
        };
        let answer = soon("an answer", self.client().controller_expand_volume(request)).await?;
        Ok(answer.into_inner().capacity_bytes)
    }

    /// The largest volume that is said to be possible, in bytes.
    pub(crate) async fn maximum(&self, place: Option<csi::Topology>) -> Answer<i64> {
        self.maximum_of(Some("vg0"), place).await
    }

    /// The same for the class that names this group, or none.
    pub(crate) async fn maximum_of(&self, vg: Option<&str>, place: Option<csi::Topology>) -> Answer<i64> {
        let mut parameters = vec![("csi.storage.k8s.io/fstype".to_owned(), "ext4".to_owned())];
        parameters.extend(vg.map(|vg| ("volumeGroup".to_owned(), vg.to_owned())));
        let request = csi::GetCapacityRequest {
            parameters: parameters.into_iter().collect(),
            accessible_topology: place,
            ..Default::default()
        };
        let answer = soon("an answer", self.client().get_capacity(request)).await?.into_inner();
        assert!(answer.maximum_volume_size.unwrap() <= answer.available_capacity);
        Ok(answer.maximum_volume_size.unwrap())
    }
}

fn socket(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("csi.sock")
}
