use std::collections::HashMap;

use tonic::Status;

use super::field::{invalid, pairs, required, unsupported};
use super::{capabilities, one_mode, place, places, range};
use crate::csi::status;
use crate::proto::csi::v1 as proto;
use crate::types::{ClassParameters, MakeOptions, VolumeMode};
use crate::volume::{CapacityRequest, CreateRequest, VolumeError};

/// What CreateVolume asks for.
///
/// # Errors
/// INVALID_ARGUMENT by the rules of the fields; RESOURCE_EXHAUSTED where it asks for places only that
/// nobody here knows, so that the scheduler looks for another.
pub fn create_request(message: &proto::CreateVolumeRequest) -> Result<CreateRequest, Status> {
    let name = required("name", &message.name)?.parse().map_err(|error| invalid("name", error))?;
    let parameters = parameters(&message.parameters)?;
    // A caller other than csi-provisioner may leave the file system to the parameters.
    let mode = one_mode(&message.volume_capabilities, parameters.fs.unwrap_or_default())?;
    let range = range(message.capacity_range.as_ref())?;
    unsupported("volume_content_source", message.volume_content_source.is_some())?;
    unsupported("mutable_parameters", !message.mutable_parameters.is_empty())?;
    let make = with_class(mode, &parameters)?;
    let requisite = places(message.accessibility_requirements.as_ref()).ok_or_else(|| {
        let reason = "the places asked for have topology segments that no node of this driver has";
        status::in_create(&VolumeError::NoPlace(reason.to_owned()))
    })?;
    Ok(CreateRequest { name, range, mode, make, parameters, requisite, cluster: None })
}

fn parameters(map: &HashMap<String, String>) -> Result<ClassParameters, Status> {
    ClassParameters::parse(pairs(map)).map_err(|error| invalid("parameters", error))
}

/// How the volume's file system is made, if the class and the capability go together.
fn with_class(mode: VolumeMode, parameters: &ClassParameters) -> Result<MakeOptions, Status> {
    let VolumeMode::Filesystem(fs) = mode else { return Ok(MakeOptions::default()) };
    if let Some(class) = parameters.fs.filter(|class| *class != fs) {
        return Err(invalid("parameters", format!("the class asks for {class}, the capability for {fs}")));
    }
    parameters.make.check(fs).map_err(|error| invalid("parameters", error))?;
    Ok(parameters.make.clone())
}

/// What GetCapacity asks for; `None` where no volume of that kind can be made anywhere.
///
/// Of the class' parameters only the group counts. Those that CreateVolume refuses make no difference here: the
/// scheduler lets a claim be created only where there is room for its class, and without an answer the reason for
/// the refusal would never stand on the claim. Nor do those that only a newer node knows.
///
/// # Errors
/// INVALID_ARGUMENT where another field is wrong.
pub fn capacity_request(message: &proto::GetCapacityRequest) -> Result<Option<CapacityRequest>, Status> {
    let volume_group = ClassParameters::volume_group(pairs(&message.parameters)).unwrap_or_default();
    if !message.volume_capabilities.is_empty() && !capabilities(&message.volume_capabilities)?.1.is_empty() {
        return Ok(None);
    }
    let segments = match &message.accessible_topology {
        None => Vec::new(),
        Some(topology) => match place(topology) {
            None => return Ok(None),
            Some(segments) => segments,
        },
    };
    Ok(Some(CapacityRequest { volume_group, segments }))
}
