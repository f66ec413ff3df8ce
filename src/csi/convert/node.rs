use tonic::Status;

use super::field::{path, required};
use super::{capability, existing};
use crate::proto::csi::v1 as proto;
use crate::types::{TargetPath, VolumeCapability, VolumeId};
use crate::volume::PublishRequest;

/// What NodeStageVolume asks for.
#[derive(Debug)]
pub struct StageRequest {
    /// The volume.
    pub id: VolumeId,
    /// Where it is to be staged.
    pub staging: TargetPath,
    /// How it is to be used.
    pub capability: VolumeCapability,
}

/// What NodeStageVolume asks for.
///
/// # Errors
/// INVALID_ARGUMENT by the rules of the fields, NOT_FOUND for an id that is none of ours.
pub fn stage_request(message: &proto::NodeStageVolumeRequest) -> Result<StageRequest, Status> {
    required("volume_id", &message.volume_id)?;
    let staging = path("staging_target_path", &message.staging_target_path)?;
    let capability = capability(message.volume_capability.as_ref())?;
    Ok(StageRequest { id: existing(&message.volume_id)?, staging, capability })
}

/// What NodePublishVolume asks for.
///
/// # Errors
/// INVALID_ARGUMENT by the rules of the fields, NOT_FOUND for an id that is none of ours,
/// FAILED_PRECONDITION where it does not say where the volume is staged (CSI specification,
/// "NodePublishVolume Errors").
pub fn publish_request(
    message: &proto::NodePublishVolumeRequest,
) -> Result<(VolumeId, PublishRequest), Status> {
    required("volume_id", &message.volume_id)?;
    let target = path("target_path", &message.target_path)?;
    let capability = capability(message.volume_capability.as_ref())?;
    if message.staging_target_path.is_empty() {
        return Err(Status::failed_precondition("staging_target_path: is required: stage the volume first"));
    }
    let staging = path("staging_target_path", &message.staging_target_path)?;
    let id = existing(&message.volume_id)?;
    Ok((id, PublishRequest { staging, target, capability, read_only: message.readonly }))
}

/// A volume, and the path at which something of it is to be undone.
///
/// # Errors
/// INVALID_ARGUMENT by the rules of the fields, NOT_FOUND for an id that is none of ours.
pub fn volume_at(id: &str, field: &str, text: &str) -> Result<(VolumeId, TargetPath), Status> {
    required("volume_id", id)?;
    let path = path(field, text)?;
    Ok((existing(id)?, path))
}

/// A volume, and a path at which it is said to be. A path that nothing can be at is no mistake in the
/// request: the volume is not there.
///
/// # Errors
/// INVALID_ARGUMENT where one is missing, NOT_FOUND for an id that is none of ours and for a path that
/// leads nowhere.
pub fn volume_found_at(id: &str, path: &str) -> Result<(VolumeId, TargetPath), Status> {
    required("volume_id", id)?;
    required("volume_path", path)?;
    let id = existing(id)?;
    let path = path.parse().map_err(|error| Status::not_found(format!("volume_path: {error}")))?;
    Ok((id, path))
}
