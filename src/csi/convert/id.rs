use tonic::Status;

use super::field::required;
use crate::types::{ParseError, VolumeId};

/// The field that names a volume in every request.
const FIELD: &str = "volume_id";

/// The longest id, in bytes (CSI specification, "Size Limits"). Nothing longer is parsed.
const LONGEST: usize = 128;

/// The volume that a request names; `None` where the text is no id of ours, so that no such volume
/// exists.
///
/// # Errors
/// INVALID_ARGUMENT where it is missing.
pub fn volume_id(text: &str) -> Result<Option<VolumeId>, Status> {
    required(FIELD, text)?;
    Ok(if text.len() > LONGEST { None } else { text.parse().ok() })
}

/// The volume that a request names, if it can exist.
///
/// # Errors
/// INVALID_ARGUMENT where it is missing, NOT_FOUND where it is no id of ours.
pub fn existing(text: &str) -> Result<VolumeId, Status> {
    volume_id(text)?.ok_or_else(|| {
        // The error shows the text escaped and shortened: it may hold anything.
        let error = ParseError::new("volume", text, "does not exist: this is no id that Quarry gives");
        Status::not_found(error.to_string())
    })
}
