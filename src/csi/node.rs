use std::fmt;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{capabilities, convert, span, status};
use crate::proto::csi::v1 as proto;
use crate::types::Segment;
use crate::volume::Volumes;

/// The Node service.
#[derive(Clone)]
pub struct Node {
    volumes: Arc<Volumes>,
}

impl Node {
    /// The service over these verbs.
    pub const fn new(volumes: Arc<Volumes>) -> Self {
        Self { volumes }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl proto::node_server::Node for Node {
    async fn node_stage_volume(
        &self,
        request: Request<proto::NodeStageVolumeRequest>,
    ) -> Result<Response<proto::NodeStageVolumeResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        let stage = convert::stage_request(request.get_ref())?;
        let staged = self.volumes.stage(&stage.id, &stage.staging, &stage.capability).await;
        staged.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<proto::NodeUnstageVolumeRequest>,
    ) -> Result<Response<proto::NodeUnstageVolumeResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        let (id, staging) =
            convert::volume_at(&request.volume_id, "staging_target_path", &request.staging_target_path)?;
        self.volumes.unstage(&id, &staging).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<proto::NodePublishVolumeRequest>,
    ) -> Result<Response<proto::NodePublishVolumeResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        let (id, publish) = convert::publish_request(request.get_ref())?;
        self.volumes.publish(&id, &publish).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<proto::NodeUnpublishVolumeRequest>,
    ) -> Result<Response<proto::NodeUnpublishVolumeResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        let (id, target) = convert::volume_at(&request.volume_id, "target_path", &request.target_path)?;
        self.volumes.unpublish(&id, &target).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<proto::NodeGetVolumeStatsRequest>,
    ) -> Result<Response<proto::NodeGetVolumeStatsResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        let (id, path) = convert::volume_found_at(&request.volume_id, &request.volume_path)?;
        let usage = self.volumes.stats(&id, &path).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodeGetVolumeStatsResponse { usage: convert::usage(usage) }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<proto::NodeExpandVolumeRequest>,
    ) -> Result<Response<proto::NodeExpandVolumeResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        let (id, path) = convert::volume_found_at(&request.volume_id, &request.volume_path)?;
        let range = convert::range(request.capacity_range.as_ref())?;
        let size = self.volumes.node_expand(&id, &path, &range).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::NodeExpandVolumeResponse { capacity_bytes: size.to_i64() }))
    }

    async fn node_get_capabilities(
        &self,
        _: Request<proto::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<proto::NodeGetCapabilitiesResponse>, Status> {
        let capabilities = capabilities::node();
        Ok(Response::new(proto::NodeGetCapabilitiesResponse { capabilities }))
    }

    /// The node's place is its name alone, whatever volume groups it has: the kubelet lets neither keys
    /// nor values change later.
    async fn node_get_info(
        &self,
        _: Request<proto::NodeGetInfoRequest>,
    ) -> Result<Response<proto::NodeGetInfoResponse>, Status> {
        let node = self.volumes.node_name();
        Ok(Response::new(proto::NodeGetInfoResponse {
            node_id: node.to_string(),
            max_volumes_per_node: 0,
            accessible_topology: Some(convert::topology(&Segment::Node(node.clone()))),
        }))
    }
}
