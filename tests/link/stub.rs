use std::sync::Arc;

use quarry::proto::csi::v1 as csi;
use tokio::sync::{Semaphore, mpsc};
use tonic::{Request, Response, Status};

/// A Controller service that does as the name of the volume says:
///
/// * `full`: there is no room;
/// * `slow`: says that it began, waits to be released, says that it ended;
/// * anything else: answers with the deadline that came with the request as the volume's id.
#[derive(Clone)]
pub(super) struct Stub {
    events: mpsc::UnboundedSender<&'static str>,
    pub(super) release: Arc<Semaphore>,
}

impl Stub {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<&'static str>) {
        let (events, receiver) = mpsc::unbounded_channel();
        (Self { events, release: Arc::new(Semaphore::new(0)) }, receiver)
    }
}

#[tonic::async_trait]
impl csi::controller_server::Controller for Stub {
    async fn create_volume(
        &self,
        request: Request<csi::CreateVolumeRequest>,
    ) -> Result<Response<csi::CreateVolumeResponse>, Status> {
        match request.get_ref().name.as_str() {
            "full" => return Err(Status::resource_exhausted("there is no room")),
            "slow" => {
                let _ = self.events.send("began");
                self.release.acquire().await.unwrap().forget();
                let _ = self.events.send("ended");
            }
            _ => {}
        }
        let deadline = request.metadata().get("grpc-timeout").map(|value| value.to_str().unwrap().to_owned());
        let volume = csi::Volume { volume_id: deadline.unwrap_or_default(), ..Default::default() };
        Ok(Response::new(csi::CreateVolumeResponse { volume: Some(volume) }))
    }
}

pub(super) fn create(name: &str) -> csi::CreateVolumeRequest {
    csi::CreateVolumeRequest { name: name.to_owned(), ..Default::default() }
}
