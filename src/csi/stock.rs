use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};

use super::{convert, span, status};
use crate::proto::quarry::v1 as proto;
use crate::types::ParseError;
use crate::volume::{Unused, UnusedVolume, Volumes};

/// The Stock service: what a controller asks of a node's volumes besides CSI.
#[derive(Clone)]
pub struct Stock {
    volumes: Arc<Volumes>,
}

impl Stock {
    /// The service over these verbs.
    pub const fn new(volumes: Arc<Volumes>) -> Self {
        Self { volumes }
    }
}

impl fmt::Debug for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stock").finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl proto::stock_server::Stock for Stock {
    async fn find(
        &self,
        request: Request<proto::FindRequest>,
    ) -> Result<Response<proto::FindResponse>, Status> {
        let name = request.get_ref().name.parse().map_err(|error| wrong("name", &error))?;
        let found = self.volumes.named(&name).await.map_err(|error| status::of(&error))?;
        let volume_ids = found.into_iter().map(|info| info.id.to_string()).collect();
        Ok(Response::new(proto::FindResponse { volume_ids }))
    }

    async fn list_unused(
        &self,
        request: Request<proto::ListUnusedRequest>,
    ) -> Result<Response<proto::ListUnusedResponse>, Status> {
        let age = Duration::from_secs(request.get_ref().age_seconds);
        let unused = self.volumes.unused(age).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::ListUnusedResponse { volumes: unused.into_iter().map(message).collect() }))
    }

    async fn remove_unused(
        &self,
        request: Request<proto::RemoveUnusedRequest>,
    ) -> Result<Response<proto::RemoveUnusedResponse>, Status> {
        let request = request.get_ref();
        span::volume(&request.volume_id);
        let id = convert::existing(&request.volume_id)?;
        let unused = Unused {
            uuid: request.lv_uuid.parse().map_err(|error| wrong("lv_uuid", &error))?,
            cluster: request.cluster.parse().map_err(|error| wrong("cluster", &error))?,
            age: Duration::from_secs(request.age_seconds),
        };
        self.volumes.remove_unused(&id, &unused).await.map_err(|error| status::of(&error))?;
        Ok(Response::new(proto::RemoveUnusedResponse {}))
    }
}

fn wrong(field: &str, error: &ParseError) -> Status {
    Status::invalid_argument(format!("{field}: {error}"))
}

fn message(volume: UnusedVolume) -> proto::UnusedVolume {
    let (claim_namespace, claim_name) =
        volume.tags.claim.map(|claim| (claim.namespace, claim.name)).unwrap_or_default();
    proto::UnusedVolume {
        volume_id: volume.info.id.to_string(),
        lv_uuid: volume.uuid.to_string(),
        name: volume.tags.name.to_string(),
        claim_namespace,
        claim_name,
        cluster: volume.tags.cluster.map(|cluster| cluster.to_string()).unwrap_or_default(),
        age_seconds: volume.age.as_secs(),
        size_bytes: volume.info.size.get(),
    }
}
