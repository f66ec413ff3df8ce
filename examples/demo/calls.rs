//! The calls, as Kubernetes' sidecars and the kubelet make them; each is shown with its answer.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use csi::controller_client::ControllerClient;
use csi::node_client::NodeClient;
use csi::volume_capability::access_mode::Mode as AccessMode;
use csi::volume_capability::{AccessType, BlockVolume, MountVolume};
use csi::volume_usage::Unit;
use quarry::proto::csi::v1 as csi;
use quarry::types::Bytes;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use crate::error::{Error, code, ensure};
use crate::screen::Screen;

/// No call here takes nearly as long.
const DEADLINE: Duration = Duration::from_secs(60);

/// How a volume is shown to its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Ext4,
    Block,
}

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Block => "raw block",
        }
    }

    fn capability(self) -> csi::VolumeCapability {
        let mode = AccessMode::SingleNodeMultiWriter.into();
        csi::VolumeCapability {
            access_mode: Some(csi::volume_capability::AccessMode { mode }),
            access_type: Some(match self {
                Self::Ext4 => AccessType::Mount(MountVolume { fs_type: "ext4".into(), ..Default::default() }),
                Self::Block => AccessType::Block(BlockVolume {}),
            }),
        }
    }
}

/// A volume that was made.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    /// Where the kubelet stages it.
    pub(crate) staging: &'static str,
    /// Where its pod sees it.
    pub(crate) target: &'static str,
}

/// Both services of a driver.
pub(crate) struct Calls {
    screen: Rc<Screen>,
    controller: ControllerClient<Channel>,
    node: NodeClient<Channel>,
}

impl Calls {
    /// Connects to the driver's socket.
    pub(crate) async fn connect(socket: &Path, screen: &Rc<Screen>) -> Result<Self, Error> {
        let endpoint = Endpoint::try_from(format!("unix://{}", socket.display()))?.timeout(DEADLINE);
        let channel = endpoint.connect().await?;
        let (controller, node) = (ControllerClient::new(channel.clone()), NodeClient::new(channel));
        Ok(Self { screen: Rc::clone(screen), controller, node })
    }

    /// What is available.
    pub(crate) async fn capacity(&mut self) -> Result<Bytes, Error> {
        let call = self.controller.get_capacity(csi::GetCapacityRequest::default());
        let show = |answer: &csi::GetCapacityResponse| {
            let largest = answer.maximum_volume_size.unwrap_or_default();
            format!("available {}, largest volume {}", bytes(answer.available_capacity), bytes(largest))
        };
        let answer = shown(&self.screen, "GetCapacity", "", call, show).await?;
        Ok(bytes(answer.available_capacity))
    }

    /// The new volume's id.
    pub(crate) async fn create(&mut self, name: &str, size: Bytes, mode: Mode) -> Result<String, Error> {
        let fields = format!("name={name}, {size}, {}", mode.word());
        let call = self.controller.create_volume(create_request(name, size, mode));
        let show = |answer: &csi::CreateVolumeResponse| {
            answer
                .volume
                .as_ref()
                .map_or_else(String::new, |volume| format!("volume_id {}", volume.volume_id))
        };
        let answer = shown(&self.screen, "CreateVolume", &fields, call, show).await?;
        let volume = answer.volume.ok_or_else(|| Error::Wrong("the answer has no volume".to_owned()))?;
        let made = bytes(volume.capacity_bytes);
        ensure(made == size, || format!("a volume of {size} was asked for, and {made} were made"))?;
        Ok(volume.volume_id)
    }

    /// Asks for a volume that must be refused, and gives the answer.
    pub(crate) async fn create_refused(&mut self, name: &str, size: Bytes) -> Result<Status, Error> {
        self.screen.call("CreateVolume", &format!("name={name}, {size}, {}", Mode::Ext4.word()));
        let started = Instant::now();
        let answer = self.controller.create_volume(create_request(name, size, Mode::Ext4)).await;
        match answer {
            Ok(_) => Err(Error::Wrong(format!("{size} were made, for which there is no room"))),
            Err(status) => {
                self.screen.answer(&code(&status), started.elapsed());
                self.screen.quote(status.message());
                Ok(status)
            }
        }
    }

    pub(crate) async fn stage(&mut self, volume: &Volume) -> Result<(), Error> {
        let call = self.node.node_stage_volume(csi::NodeStageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: volume.staging.into(),
            volume_capability: Some(volume.mode.capability()),
            ..Default::default()
        });
        shown(&self.screen, "NodeStageVolume", &format!("at {}", volume.staging), call, ok).await.map(drop)
    }

    pub(crate) async fn publish(&mut self, volume: &Volume) -> Result<(), Error> {
        let call = self.node.node_publish_volume(csi::NodePublishVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: volume.staging.into(),
            target_path: volume.target.into(),
            volume_capability: Some(volume.mode.capability()),
            ..Default::default()
        });
        shown(&self.screen, "NodePublishVolume", &format!("at {}", volume.target), call, ok).await.map(drop)
    }

    /// How many bytes of a mounted volume are used.
    pub(crate) async fn used(&mut self, volume: &Volume) -> Result<Bytes, Error> {
        let call = self.node.node_get_volume_stats(csi::NodeGetVolumeStatsRequest {
            volume_id: volume.id.clone(),
            volume_path: volume.target.into(),
            ..Default::default()
        });
        let of_bytes = |answer: &csi::NodeGetVolumeStatsResponse| {
            answer.usage.iter().find(|usage| usage.unit() == Unit::Bytes).cloned().unwrap_or_default()
        };
        let show = |answer: &csi::NodeGetVolumeStatsResponse| {
            let usage = of_bytes(answer);
            format!("{} used of {}", rounded(usage.used), rounded(usage.total))
        };
        let answer =
            shown(&self.screen, "NodeGetVolumeStats", &format!("at {}", volume.target), call, show).await?;
        Ok(bytes(of_bytes(&answer).used))
    }

    pub(crate) async fn expand(&mut self, volume: &Volume, size: Bytes) -> Result<(), Error> {
        let call = self.controller.controller_expand_volume(csi::ControllerExpandVolumeRequest {
            volume_id: volume.id.clone(),
            capacity_range: Some(range(size)),
            volume_capability: Some(volume.mode.capability()),
            ..Default::default()
        });
        let show = |answer: &csi::ControllerExpandVolumeResponse| {
            let rest = if answer.node_expansion_required { "the node has more to do" } else { "all done" };
            format!("{}, {rest}", bytes(answer.capacity_bytes))
        };
        let answer = shown(&self.screen, "ControllerExpandVolume", &size.to_string(), call, show).await?;
        ensure(bytes(answer.capacity_bytes) == size && !answer.node_expansion_required, || {
            format!("the volume should have {size} now, file system and all")
        })
    }

    pub(crate) async fn unpublish(&mut self, volume: &Volume) -> Result<(), Error> {
        let request = csi::NodeUnpublishVolumeRequest {
            volume_id: volume.id.clone(),
            target_path: volume.target.into(),
        };
        let call = self.node.node_unpublish_volume(request);
        shown(&self.screen, "NodeUnpublishVolume", &format!("at {}", volume.target), call, ok).await.map(drop)
    }

    pub(crate) async fn unstage(&mut self, volume: &Volume) -> Result<(), Error> {
        let request = csi::NodeUnstageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: volume.staging.into(),
        };
        let call = self.node.node_unstage_volume(request);
        shown(&self.screen, "NodeUnstageVolume", &format!("at {}", volume.staging), call, ok).await.map(drop)
    }

    pub(crate) async fn delete(&mut self, volume: &Volume) -> Result<(), Error> {
        let request = csi::DeleteVolumeRequest { volume_id: volume.id.clone(), ..Default::default() };
        let call = self.controller.delete_volume(request);
        shown(&self.screen, "DeleteVolume", &volume.id, call, ok).await.map(drop)
    }
}

/// Shows a call, makes it, and shows its answer.
async fn shown<T>(
    screen: &Screen,
    method: &'static str,
    fields: &str,
    call: impl Future<Output = Result<Response<T>, Status>>,
    show: impl FnOnce(&T) -> String,
) -> Result<T, Error> {
    screen.call(method, fields);
    let started = Instant::now();
    let answer = call.await.map_err(|status| Error::rpc(method, &status))?.into_inner();
    screen.answer(&show(&answer), started.elapsed());
    Ok(answer)
}

fn ok<T>(_: &T) -> String {
    "OK".to_owned()
}

fn create_request(name: &str, size: Bytes, mode: Mode) -> csi::CreateVolumeRequest {
    csi::CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(range(size)),
        volume_capabilities: vec![mode.capability()],
        ..Default::default()
    }
}

fn range(size: Bytes) -> csi::CapacityRange {
    csi::CapacityRange { required_bytes: size.to_i64(), limit_bytes: 0 }
}

fn bytes(number: i64) -> Bytes {
    Bytes::new(u64::try_from(number).unwrap_or_default())
}

/// To the next MiB: a file system's numbers are not round.
fn rounded(number: i64) -> Bytes {
    Bytes::mib(bytes(number).get().div_ceil(Bytes::mib(1).get()))
}
