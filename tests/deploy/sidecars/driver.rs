//! A driver with our capabilities that answers at once, and makes nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use quarry::csi::{Identity, router_capabilities};
use quarry::proto::csi::v1 as csi;
use quarry::types::VG_KEY_PREFIX;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use super::super::calls::GROUP;

/// Room for volumes at first, in bytes.
const ROOM: i64 = 64 << 30;

#[derive(Debug, Clone)]
pub(super) struct Driver {
    room: Arc<AtomicI64>,
    refusals: Arc<AtomicUsize>,
}

impl Driver {
    /// Serves on the socket until the process ends.
    pub(super) fn serve(socket: &Path) -> Self {
        let driver = Self { room: Arc::new(AtomicI64::new(ROOM)), refusals: Arc::default() };
        let connections = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
        let server = tonic::transport::Server::builder()
            .add_service(csi::identity_server::IdentityServer::new(Identity::new(|| true)))
            .add_service(csi::controller_server::ControllerServer::new(driver.clone()))
            .serve_with_incoming(connections);
        tokio::spawn(server);
        driver
    }

    /// Has no room for so many volumes.
    pub(super) fn refuse(&self, times: usize) {
        self.refusals.store(times, Ordering::SeqCst);
    }
}

#[tonic::async_trait]
impl csi::controller_server::Controller for Driver {
    async fn controller_get_capabilities(
        &self,
        _: Request<csi::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<csi::ControllerGetCapabilitiesResponse>, Status> {
        let capabilities = router_capabilities();
        Ok(Response::new(csi::ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn create_volume(
        &self,
        request: Request<csi::CreateVolumeRequest>,
    ) -> Result<Response<csi::CreateVolumeResponse>, Status> {
        let fewer = |left: usize| left.checked_sub(1);
        if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
            self.room.store(0, Ordering::SeqCst);
            return Err(Status::resource_exhausted("there is no room"));
        }
        let request = request.into_inner();
        let place = csi::Topology { segments: [(format!("{VG_KEY_PREFIX}/{GROUP}"), "true".into())].into() };
        let volume = csi::Volume {
            volume_id: format!("{GROUP}/{}", request.name),
            capacity_bytes: request.capacity_range.unwrap_or_default().required_bytes,
            accessible_topology: vec![place],
            ..csi::Volume::default()
        };
        Ok(Response::new(csi::CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        _: Request<csi::DeleteVolumeRequest>,
    ) -> Result<Response<csi::DeleteVolumeResponse>, Status> {
        Ok(Response::new(csi::DeleteVolumeResponse {}))
    }

    async fn get_capacity(
        &self,
        _: Request<csi::GetCapacityRequest>,
    ) -> Result<Response<csi::GetCapacityResponse>, Status> {
        let room = self.room.load(Ordering::SeqCst);
        Ok(Response::new(csi::GetCapacityResponse {
            available_capacity: room,
            maximum_volume_size: Some(room),
            ..csi::GetCapacityResponse::default()
        }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<csi::ControllerExpandVolumeRequest>,
    ) -> Result<Response<csi::ControllerExpandVolumeResponse>, Status> {
        let capacity_bytes = request.into_inner().capacity_range.unwrap_or_default().required_bytes;
        Ok(Response::new(csi::ControllerExpandVolumeResponse {
            capacity_bytes,
            node_expansion_required: false,
        }))
    }
}
