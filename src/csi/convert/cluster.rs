use tonic::metadata::MetadataMap;

use crate::types::ClusterId;

/// The metadata in which a controller says for which cluster a volume is made.
pub const CLUSTER: &str = "quarry-cluster";

/// The cluster that a call comes from. A caller who is no controller of ours does not say, and what makes no
/// sense says nothing.
pub fn cluster(metadata: &MetadataMap) -> Option<ClusterId> {
    metadata.get(CLUSTER)?.to_str().ok()?.parse().ok()
}
