use std::collections::HashMap;
use std::fmt;

use tonic::Status;

use crate::types::TargetPath;

/// INVALID_ARGUMENT, with a message that begins with the field's name.
pub(super) fn invalid(field: &str, why: impl fmt::Display) -> Status {
    Status::invalid_argument(format!("{field}: {why}"))
}

/// A field that must be there.
///
/// # Errors
/// INVALID_ARGUMENT where it is empty.
pub fn required<'a>(field: &str, value: &'a str) -> Result<&'a str, Status> {
    if value.is_empty() { Err(invalid(field, "is required")) } else { Ok(value) }
}

/// A path that the CO wants something done at.
///
/// # Errors
/// INVALID_ARGUMENT where it is missing, or is no path that something may be done at.
pub fn path(field: &str, value: &str) -> Result<TargetPath, Status> {
    required(field, value)?.parse().map_err(|error| invalid(field, error))
}

/// A field that only offers of other drivers make use of.
///
/// # Errors
/// INVALID_ARGUMENT where there is something in it.
pub(super) fn unsupported(field: &str, is_there: bool) -> Result<(), Status> {
    if is_there { Err(invalid(field, "is not supported by this driver")) } else { Ok(()) }
}

/// The pairs of a map, in an order that does not change, so that the same request is refused with the
/// same words.
pub(super) fn pairs(map: &HashMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let mut pairs: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    pairs.sort_unstable();
    pairs.into_iter()
}
