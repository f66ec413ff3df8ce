use tonic::Status;

use super::answer::volume;
use crate::proto::csi::v1 as proto;
use crate::types::{ParseError, VolumeId};
use crate::volume::VolumeInfo;

/// Which part of a list is asked for. A token is the last id of the page before, so that it stays true whatever
/// comes and goes between two calls.
#[derive(Debug)]
pub struct Page {
    after: Option<VolumeId>,
    length: usize,
}

/// The page that a request names.
///
/// # Errors
/// INVALID_ARGUMENT where the number of entries is negative, ABORTED where the token is none of ours (CSI
/// specification, "ListVolumes Errors").
pub fn page(request: &proto::ListVolumesRequest) -> Result<Page, Status> {
    let length = usize::try_from(request.max_entries)
        .map_err(|_| Status::invalid_argument("max_entries: must not be negative"))?;
    let token = request.starting_token.as_str();
    let after = (!token.is_empty()).then(|| token.parse()).transpose();
    let after = after.map_err(|_: ParseError| {
        let error = ParseError::new("starting_token", token, "is none that Quarry gave: begin the list anew");
        Status::aborted(error.to_string())
    })?;
    Ok(Page { after, length: if length == 0 { usize::MAX } else { length } })
}

impl Page {
    /// This page of all volumes, which are in the order of their ids.
    pub fn of(&self, volumes: &[VolumeInfo]) -> proto::ListVolumesResponse {
        let start =
            volumes.partition_point(|info| self.after.as_ref().is_some_and(|after| info.id <= *after));
        let rest = &volumes[start..];
        let shown = &rest[..self.length.min(rest.len())];
        let last = shown.last().filter(|_| shown.len() < rest.len());
        proto::ListVolumesResponse {
            entries: shown.iter().map(entry).collect(),
            next_token: last.map(|info| info.id.to_string()).unwrap_or_default(),
        }
    }
}

fn entry(info: &VolumeInfo) -> proto::list_volumes_response::Entry {
    proto::list_volumes_response::Entry { volume: Some(volume(info)), status: None }
}
