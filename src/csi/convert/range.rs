use tonic::Status;

use super::field::invalid;
use crate::proto::csi::v1 as proto;
use crate::types::{Bytes, CapacityRange};

/// The field that holds sizes in every request.
const FIELD: &str = "capacity_range";

/// The sizes that would do; zero is how CSI says that it does not care.
///
/// # Errors
/// INVALID_ARGUMENT where a number is negative.
pub fn range(message: Option<&proto::CapacityRange>) -> Result<CapacityRange, Status> {
    let Some(message) = message else { return Ok(CapacityRange::default()) };
    let bytes = |name, number| Bytes::from_i64(name, number).map_err(|error| invalid(FIELD, error));
    let required = bytes("required_bytes", message.required_bytes)?;
    let limit = bytes("limit_bytes", message.limit_bytes)?;
    Ok(CapacityRange { required, limit: (limit > Bytes::ZERO).then_some(limit) })
}

/// The sizes that a volume is to grow to.
///
/// # Errors
/// INVALID_ARGUMENT where there is none, or a number is negative.
pub fn wanted(message: Option<&proto::CapacityRange>) -> Result<CapacityRange, Status> {
    let range = range(message)?;
    if range == CapacityRange::default() {
        return Err(invalid(FIELD, "is required"));
    }
    Ok(range)
}
