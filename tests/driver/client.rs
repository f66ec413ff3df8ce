use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use csi::controller_client::ControllerClient;
use csi::identity_client::IdentityClient;
use csi::node_client::NodeClient;
use csi::volume_capability::access_mode::Mode as AccessMode;
use csi::volume_capability::{self, AccessType};
use quarry::proto::csi::v1 as csi;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::{MIB, SIZE};

/// How a volume is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Ext4,
    Xfs,
    Btrfs,
    Block,
}

impl Mode {
    /// Each file system.
    pub(crate) const FILE_SYSTEMS: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// All that there is.
    pub(crate) const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Block];

    /// What its volumes are called in tests, and a file system in CSI.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Block => "block",
        }
    }

    /// The size of a volume whose size does not matter: small, since it is read from end to end.
    pub(crate) const fn size(self) -> u64 {
        match self {
            Self::Ext4 | Self::Block => SIZE,
            Self::Xfs => 300 * MIB,
            Self::Btrfs => 256 * MIB,
        }
    }

    pub(crate) fn capability(self) -> csi::VolumeCapability {
        self.capability_for(AccessMode::SingleNodeMultiWriter)
    }

    pub(crate) fn capability_for(self, mode: AccessMode) -> csi::VolumeCapability {
        let access = match self {
            Self::Block => AccessType::Block(volume_capability::BlockVolume {}),
            fs => AccessType::Mount(volume_capability::MountVolume {
                fs_type: fs.word().into(),
                ..Default::default()
            }),
        };
        csi::VolumeCapability {
            access_mode: Some(volume_capability::AccessMode { mode: mode.into() }),
            access_type: Some(access),
        }
    }
}

/// A caller of the driver, as Kubernetes' sidecars and the kubelet are.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) controller: ControllerClient<Channel>,
    pub(crate) node: NodeClient<Channel>,
    pub(crate) identity: IdentityClient<Channel>,
    deadline: Duration,
}

/// How long a call may take. Nothing in these tests does, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) type Answer<T> = Result<T, Status>;

/// The parameters of a class that names a group.
fn in_group(vg: &str) -> HashMap<String, String> {
    HashMap::from([("volumeGroup".to_owned(), vg.to_owned())])
}

fn range(size: u64) -> csi::CapacityRange {
    csi::CapacityRange { required_bytes: size.try_into().unwrap(), limit_bytes: 0 }
}

impl Client {
    /// `None` where nobody answers.
    pub(crate) async fn connect(socket: &Path) -> Option<Self> {
        let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).unwrap();
        let channel = endpoint.connect().await.ok()?;
        let probe = IdentityClient::new(channel.clone()).probe(csi::ProbeRequest {}).await;
        probe.ok()?.into_inner().ready.filter(|ready| *ready)?;
        Some(Self {
            controller: ControllerClient::new(channel.clone()),
            node: NodeClient::new(channel.clone()),
            identity: IdentityClient::new(channel),
            deadline: DEADLINE,
        })
    }

    /// The same client, with another deadline for its calls.
    pub(crate) fn within(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// Whether the driver says that it is ready.
    pub(crate) async fn probe(&mut self) -> Answer<bool> {
        let request = self.request(csi::ProbeRequest {});
        Ok(self.identity.probe(request).await?.into_inner().ready.unwrap())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.deadline);
        request
    }

    pub(crate) async fn create(&mut self, name: &str, size: u64, mode: Mode) -> Answer<csi::Volume> {
        self.create_with(csi::CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(range(size)),
            volume_capabilities: vec![mode.capability()],
            ..Default::default()
        })
        .await
    }

    /// Makes a volume in that group.
    pub(crate) async fn create_in(
        &mut self,
        vg: &str,
        name: &str,
        size: u64,
        mode: Mode,
    ) -> Answer<csi::Volume> {
        self.create_with(csi::CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(range(size)),
            volume_capabilities: vec![mode.capability()],
            parameters: in_group(vg),
            ..Default::default()
        })
        .await
    }

    pub(crate) async fn create_with(&mut self, request: csi::CreateVolumeRequest) -> Answer<csi::Volume> {
        let request = self.request(request);
        Ok(self.controller.create_volume(request).await?.into_inner().volume.unwrap())
    }

    pub(crate) async fn stats(&mut self, id: &str, path: &Path) -> Answer<csi::NodeGetVolumeStatsResponse> {
        let request = csi::NodeGetVolumeStatsRequest {
            volume_id: id.into(),
            volume_path: path.to_str().unwrap().into(),
            ..Default::default()
        };
        let request = self.request(request);
        Ok(self.node.node_get_volume_stats(request).await?.into_inner())
    }

    pub(crate) async fn delete(&mut self, id: &str) -> Answer<()> {
        let request = csi::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
        let request = self.request(request);
        self.controller.delete_volume(request).await.map(drop)
    }

    /// The size afterwards.
    pub(crate) async fn expand(&mut self, id: &str, size: u64, mode: Mode) -> Answer<u64> {
        let answer = self.expand_to(id, range(size), mode).await?;
        assert!(!answer.node_expansion_required, "the driver does all of an expansion itself");
        Ok(answer.capacity_bytes.try_into().unwrap())
    }

    pub(crate) async fn expand_to(
        &mut self,
        id: &str,
        range: csi::CapacityRange,
        mode: Mode,
    ) -> Answer<csi::ControllerExpandVolumeResponse> {
        let request = self.request(csi::ControllerExpandVolumeRequest {
            volume_id: id.into(),
            capacity_range: Some(range),
            volume_capability: Some(mode.capability()),
            ..Default::default()
        });
        Ok(self.controller.controller_expand_volume(request).await?.into_inner())
    }

    /// The size afterwards.
    pub(crate) async fn node_expand(&mut self, id: &str, path: &Path, size: u64) -> Answer<u64> {
        let request = self.request(csi::NodeExpandVolumeRequest {
            volume_id: id.into(),
            volume_path: path.to_str().unwrap().into(),
            capacity_range: Some(range(size)),
            ..Default::default()
        });
        let answer = self.node.node_expand_volume(request).await?.into_inner();
        Ok(answer.capacity_bytes.try_into().unwrap())
    }

    /// What is available, and the largest volume that could be made.
    pub(crate) async fn capacity(&mut self) -> Answer<(u64, u64)> {
        self.capacity_as(csi::GetCapacityRequest::default()).await
    }

    /// The same, of one group.
    pub(crate) async fn capacity_in(&mut self, vg: &str) -> Answer<(u64, u64)> {
        self.capacity_as(csi::GetCapacityRequest { parameters: in_group(vg), ..Default::default() }).await
    }

    async fn capacity_as(&mut self, request: csi::GetCapacityRequest) -> Answer<(u64, u64)> {
        let request = self.request(request);
        let answer = self.controller.get_capacity(request).await?.into_inner();
        Ok((
            answer.available_capacity.try_into().unwrap(),
            answer.maximum_volume_size.unwrap().try_into().unwrap(),
        ))
    }

    pub(crate) async fn stage(&mut self, id: &str, staging: &Path, mode: Mode) -> Answer<()> {
        self.stage_as(id, staging, mode.capability()).await
    }

    pub(crate) async fn stage_as(
        &mut self,
        id: &str,
        staging: &Path,
        capability: csi::VolumeCapability,
    ) -> Answer<()> {
        let request = csi::NodeStageVolumeRequest {
            volume_id: id.into(),
            staging_target_path: staging.to_str().unwrap().into(),
            volume_capability: Some(capability),
            ..Default::default()
        };
        let request = self.request(request);
        self.node.node_stage_volume(request).await.map(drop)
    }

    pub(crate) async fn unstage(&mut self, id: &str, staging: &Path) -> Answer<()> {
        let staging = staging.to_str().unwrap().into();
        let request = csi::NodeUnstageVolumeRequest { volume_id: id.into(), staging_target_path: staging };
        let request = self.request(request);
        self.node.node_unstage_volume(request).await.map(drop)
    }

    pub(crate) async fn publish(
        &mut self,
        id: &str,
        staging: &Path,
        target: &Path,
        mode: Mode,
    ) -> Answer<()> {
        self.publish_with(csi::NodePublishVolumeRequest {
            volume_id: id.into(),
            staging_target_path: staging.to_str().unwrap().into(),
            target_path: target.to_str().unwrap().into(),
            volume_capability: Some(mode.capability()),
            publish_context: HashMap::new(),
            ..Default::default()
        })
        .await
    }

    pub(crate) async fn publish_with(&mut self, request: csi::NodePublishVolumeRequest) -> Answer<()> {
        let request = self.request(request);
        self.node.node_publish_volume(request).await.map(drop)
    }

    pub(crate) async fn unpublish(&mut self, id: &str, target: &Path) -> Answer<()> {
        let target = target.to_str().unwrap().into();
        let request = csi::NodeUnpublishVolumeRequest { volume_id: id.into(), target_path: target };
        let request = self.request(request);
        self.node.node_unpublish_volume(request).await.map(drop)
    }
}

/// Demands that a call was refused with that code, and that the message tells the reason.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Answer<T>, code: Code, reason: &str) {
    let status = answer.expect_err(reason);
    assert_eq!(status.code(), code, "{}", status.message());
    assert!(status.message().contains(reason), "{:?} is not in {:?}", reason, status.message());
}
