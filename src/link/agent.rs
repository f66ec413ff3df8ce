use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::WatchStream;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use super::{StateFeed, TokenFile, wire};
use crate::proto::quarry::v1 as proto;
use crate::types::chain;

/// The Agent service of a node.
#[derive(Debug, Clone)]
pub struct Agent {
    states: StateFeed,
    token: TokenFile,
}

impl Agent {
    /// The service that shows these states and this token.
    pub const fn new(states: StateFeed, token: TokenFile) -> Self {
        Self { states, token }
    }
}

#[tonic::async_trait]
impl proto::agent_server::Agent for Agent {
    /// Whoever reads slowly gets the newest state next, not every one.
    async fn watch_state(
        &self,
        _: Request<proto::WatchStateRequest>,
    ) -> Result<Response<BoxStream<proto::NodeState>>, Status> {
        let states = WatchStream::new(self.states.subscribe())
            .filter_map(|state| state.map(|state| Ok(wire::message(state))));
        Ok(Response::new(Box::pin(states)))
    }

    async fn identify(
        &self,
        _: Request<proto::IdentifyRequest>,
    ) -> Result<Response<proto::IdentifyResponse>, Status> {
        let token = self.token.read().await.map_err(|error| Status::unavailable(chain(&error)))?;
        Ok(Response::new(proto::IdentifyResponse { token: token.reveal().to_owned() }))
    }
}
