use std::collections::HashMap;

use tonic::Status;

use super::capability::{BadCapability, capabilities};
use super::field::{required, unsupported};
use crate::proto::csi::v1 as proto;
use crate::types::{VolumeCapability, VolumeMode};
use proto::validate_volume_capabilities_response::Confirmed;

/// What ValidateVolumeCapabilities asks about a volume.
#[derive(Debug)]
pub struct Question {
    asked: Vec<VolumeCapability>,
    impossible: Vec<BadCapability>,
}

/// What ValidateVolumeCapabilities asks.
///
/// # Errors
/// INVALID_ARGUMENT by the rules of the fields.
pub fn question(message: &proto::ValidateVolumeCapabilitiesRequest) -> Result<Question, Status> {
    required("volume_id", &message.volume_id)?;
    let (asked, impossible) = capabilities(&message.volume_capabilities)?;
    unsupported("mutable_parameters", !message.mutable_parameters.is_empty())?;
    Ok(Question { asked, impossible })
}

impl Question {
    /// The answer for a volume of that mode. `capabilities` are those of the request, repeated where all of
    /// them hold. Parameters and context are not repeated: they were not checked (CSI specification,
    /// "ValidateVolumeCapabilities").
    pub fn answer(
        &self,
        mode: VolumeMode,
        capabilities: Vec<proto::VolumeCapability>,
    ) -> proto::ValidateVolumeCapabilitiesResponse {
        if let Some(message) = self.objection(mode) {
            return proto::ValidateVolumeCapabilitiesResponse { confirmed: None, message };
        }
        let confirmed = Confirmed {
            volume_capabilities: capabilities,
            volume_context: HashMap::new(),
            parameters: HashMap::new(),
            mutable_parameters: HashMap::new(),
        };
        proto::ValidateVolumeCapabilitiesResponse { confirmed: Some(confirmed), message: String::new() }
    }

    fn objection(&self, mode: VolumeMode) -> Option<String> {
        if let Some(error) = self.impossible.first() {
            return Some(error.to_string());
        }
        if let Some(other) = self.asked.iter().find(|capability| !capability.mode.fits(mode)) {
            return Some(format!("the volume is made as {mode}, and cannot be used as {}", other.mode));
        }
        let VolumeMode::Filesystem(fs) = mode else { return None };
        let error = self.asked.iter().find_map(|capability| capability.options.check(fs).err())?;
        Some(format!("mount_flags: {error}"))
    }
}
