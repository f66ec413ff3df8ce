use std::fmt;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{capabilities, convert, span, status};
use crate::proto::csi::v1 as proto;
use crate::volume::{Capacity, CreateRequest, Volumes};

/// The Controller service, for the volumes of this node.
#[derive(Clone)]
pub struct Controller {
    volumes: Arc<Volumes>,
}

impl Controller {
    /// The service over these verbs.
    pub const fn new(volumes: Arc<Volumes>) -> Self {
        Self { volumes }
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl proto::controller_server::Controller for Controller {
    async fn create_volume(
        &self,
        request: Request<proto::CreateVolumeRequest>,
    ) -> Result<Response<proto::CreateVolumeResponse>, Status> {
        span::name(&request.get_ref().name);
        let cluster = convert::cluster(request.metadata());
        let request = CreateRequest { cluster, ..convert::create_request(request.get_ref())? };
        let info = self.volumes.create(&request).await.map_err(|error| status::in_create(&error))?;
        span::volume(&info.id.to_string());
        let volume = Some(convert::volume(&info));
        Ok(Response::new(proto::CreateVolumeResponse { volume }))
    }

    async fn delete_volume(
        &self,
        request: Request<proto::DeleteVolumeRequest>,
    ) -> Result<Response<proto::DeleteVolumeResponse>, Status> {
        span::volume(&request.get_ref().volume_id);
        // An id that is none of ours names nothing, and nothing is what is to be left.
        if let Some(id) = convert::volume_id(&request.get_ref().volume_id)? {
            self.volumes.delete(&id).await.map_err(|error| status::of(&error))?;
        }
        Ok(Response::new(proto::DeleteVolumeResponse {}))
    }

    async fn list_volumes(
        &self,
        request: Request<proto::ListVolumesRequest>,
    ) -> Result<Response<proto::ListVolumesResponse>, Status> {
        let page = convert::page(request.get_ref())?;
        let volumes = self.volumes.list().await.map_err(|error| status::of(&error))?;
        Ok(Response::new(page.of(&volumes)))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<proto::ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<proto::ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        span::volume(&request.volume_id);
        let question = convert::question(&request)?;
        let id = convert::existing(&request.volume_id)?;
        let mode = self.volumes.get(&id).await.map_err(|error| status::of(&error))?.mode;
        Ok(Response::new(question.answer(mode, request.volume_capabilities)))
    }

    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Result<Response<proto::GetCapacityResponse>, Status> {
        let capacity = match convert::capacity_request(request.get_ref())? {
            Some(request) => self.volumes.capacity(&request).await,
            None => Capacity::default(),
        };
        Ok(Response::new(convert::capacity(capacity)))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<proto::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<proto::ControllerGetCapabilitiesResponse>, Status> {
        let capabilities = capabilities::controller();
        Ok(Response::new(proto::ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<proto::ControllerExpandVolumeRequest>,
    ) -> Result<Response<proto::ControllerExpandVolumeResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        convert::required("volume_id", &request.volume_id)?;
        let range = convert::wanted(request.capacity_range.as_ref())?;
        let id = convert::existing(&request.volume_id)?;
        let expanded = self.volumes.expand(&id, &range).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::ControllerExpandVolumeResponse {
            capacity_bytes: expanded.size.to_i64(),
            node_expansion_required: expanded.node_expansion_required,
        }))
    }
}
