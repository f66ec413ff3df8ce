use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{DRIVER_NAME, capabilities};
use crate::proto::csi::v1 as proto;

/// The Identity service: who the driver is, and whether it is ready.
#[derive(Clone)]
pub struct Identity {
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Identity {
    /// Answers Probe with what `ready` says at that moment. It must answer from memory: liveness must
    /// not depend on LVM.
    pub fn new(ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { ready: Arc::new(ready) }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl proto::identity_server::Identity for Identity {
    async fn get_plugin_info(
        &self,
        _: Request<proto::GetPluginInfoRequest>,
    ) -> Result<Response<proto::GetPluginInfoResponse>, Status> {
        Ok(Response::new(proto::GetPluginInfoResponse {
            name: DRIVER_NAME.to_owned(),
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: HashMap::new(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<proto::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<proto::GetPluginCapabilitiesResponse>, Status> {
        let capabilities = capabilities::plugin();
        Ok(Response::new(proto::GetPluginCapabilitiesResponse { capabilities }))
    }

    /// Not ready is no error: the driver is initializing (CSI specification, "Probe").
    async fn probe(&self, _: Request<proto::ProbeRequest>) -> Result<Response<proto::ProbeResponse>, Status> {
        Ok(Response::new(proto::ProbeResponse { ready: Some((self.ready)()) }))
    }
}
