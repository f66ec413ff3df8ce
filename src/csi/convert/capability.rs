use tonic::Status;

use super::field::invalid;
use crate::proto::csi::v1 as proto;
use crate::types::{AccessMode, FsType, MountOptions, VolumeCapability, VolumeMode, WantedMode};
use proto::volume_capability::AccessType;
use proto::volume_capability::access_mode::Mode;

/// A capability that no volume of this driver has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCapability {
    /// The message lacks what the specification asks for.
    #[error("{0}")]
    Malformed(&'static str),
    /// It makes sense, and cannot be had here.
    #[error("{0}")]
    Unsupported(String),
}

/// One capability.
///
/// # Errors
/// See [`BadCapability`].
fn parse(message: &proto::VolumeCapability) -> Result<VolumeCapability, BadCapability> {
    let access = access(message.access_mode.as_ref())?;
    let malformed = BadCapability::Malformed("access_type is required");
    match message.access_type.as_ref().ok_or(malformed)? {
        AccessType::Block(_) => {
            Ok(VolumeCapability { access, mode: WantedMode::Block, options: MountOptions::default() })
        }
        AccessType::Mount(mount) => {
            let (fs, options) = mounted(mount)?;
            Ok(VolumeCapability { access, mode: WantedMode::Filesystem(fs), options })
        }
    }
}

fn access(message: Option<&proto::volume_capability::AccessMode>) -> Result<AccessMode, BadCapability> {
    let malformed = BadCapability::Malformed("access_mode is required");
    let mode = message.ok_or(malformed.clone())?.mode;
    match Mode::try_from(mode) {
        Ok(Mode::SingleNodeWriter) => Ok(AccessMode::SingleNodeWriter),
        Ok(Mode::SingleNodeReaderOnly) => Ok(AccessMode::SingleNodeReaderOnly),
        Ok(Mode::SingleNodeSingleWriter) => Ok(AccessMode::SingleNodeSingleWriter),
        Ok(Mode::SingleNodeMultiWriter) => Ok(AccessMode::SingleNodeMultiWriter),
        Ok(mode @ (Mode::MultiNodeReaderOnly | Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter)) => {
            Err(BadCapability::Unsupported(format!(
                "access_mode {} is not supported, since a volume is on one node: use ReadWriteOnce, whose pods on \
             that node share the volume",
                mode.as_str_name()
            )))
        }
        Ok(Mode::Unknown) => Err(malformed),
        Err(_) => Err(BadCapability::Unsupported(format!("access_mode {mode} is not known"))),
    }
}

fn mounted(
    mount: &proto::volume_capability::MountVolume,
) -> Result<(Option<FsType>, MountOptions), BadCapability> {
    let unsupported =
        |what: &str, why: &dyn std::fmt::Display| BadCapability::Unsupported(format!("{what}: {why}"));
    if !mount.volume_mount_group.is_empty() {
        return Err(unsupported("volume_mount_group", &"is not supported by this driver"));
    }
    let named = Some(&mount.fs_type).filter(|name| !name.is_empty());
    let fs = named.map(|name| name.parse::<FsType>()).transpose();
    let fs = fs.map_err(|error| unsupported("fs_type", &error))?;
    let options = MountOptions::parse(mount.mount_flags.iter().map(String::as_str));
    let options = options.and_then(|options| fs.map_or(Ok(()), |fs| options.check(fs)).map(|()| options));
    Ok((fs, options.map_err(|error| unsupported("mount_flags", &error))?))
}

/// The capability that a request must name.
///
/// # Errors
/// INVALID_ARGUMENT where it is missing, malformed, or cannot be had.
pub fn capability(message: Option<&proto::VolumeCapability>) -> Result<VolumeCapability, Status> {
    let message = message.ok_or_else(|| invalid("volume_capability", "is required"))?;
    parse(message).map_err(|error| invalid("volume_capability", error))
}

/// The capabilities that a request must name, at least one. The second list is of those that make sense
/// and cannot be had.
///
/// # Errors
/// INVALID_ARGUMENT where there is none, or one is malformed.
pub fn capabilities(
    messages: &[proto::VolumeCapability],
) -> Result<(Vec<VolumeCapability>, Vec<BadCapability>), Status> {
    if messages.is_empty() {
        return Err(invalid("volume_capabilities", "is required"));
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for message in messages {
        match parse(message) {
            Ok(capability) => good.push(capability),
            Err(error @ BadCapability::Malformed(_)) => return Err(invalid("volume_capabilities", error)),
            Err(error @ BadCapability::Unsupported(_)) => bad.push(error),
        }
    }
    Ok((good, bad))
}

/// How a volume is shown that has all of the capabilities, with the file system `fs` where they name none.
///
/// # Errors
/// INVALID_ARGUMENT where there is none, one is malformed or cannot be had, or two exclude each other.
pub fn one_mode(messages: &[proto::VolumeCapability], fs: FsType) -> Result<VolumeMode, Status> {
    let (good, bad) = capabilities(messages)?;
    if let Some(error) = bad.first() {
        return Err(invalid("volume_capabilities", error));
    }
    for capability in &good {
        if let VolumeMode::Filesystem(fs) = capability.mode.or(fs) {
            capability.options.check(fs).map_err(|error| invalid("volume_capabilities", error))?;
        }
    }
    let mut modes = good.iter().map(|capability| capability.mode.or(fs));
    let first = modes.next().ok_or_else(|| invalid("volume_capabilities", "is required"))?;
    match modes.find(|mode| *mode != first) {
        None => Ok(first),
        Some(other) => {
            Err(invalid("volume_capabilities", format!("no volume is both a {first} and a {other}")))
        }
    }
}
