use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::{Session, Tuning, wire};
use crate::proto::quarry::v1 as proto;
use crate::types::NodeState;

/// How many times in a row a node's regular state may fail to come before the link counts as bad.
const MISSED: u32 = 3;

/// Takes note of every state that the node sends. Returns when no more come: without a reason where the node
/// has ended them, as it does first of all when it stops; with one where the link is of no use any more.
pub(super) async fn follow(
    session: &Session,
    states: &watch::Sender<Option<NodeState>>,
    tuning: &Tuning,
) -> Option<String> {
    let refused = |status: Status| Some(format!("the node does not send its state: {}", status.message()));
    let mut client = proto::agent_client::AgentClient::new(session.channel());
    let mut stream = match client.watch_state(proto::WatchStateRequest {}).await {
        Ok(stream) => stream.into_inner(),
        Err(status) => return refused(status),
    };
    loop {
        match timeout(tuning.heartbeat * MISSED, next(&mut stream)).await {
            Ok(Ok(Some(state))) => drop(states.send_replace(Some(state))),
            Ok(Ok(None)) => return None,
            Ok(Err(status)) => return refused(status),
            Err(_) => return Some("the node has stopped sending its state".to_owned()),
        }
    }
}

async fn next(stream: &mut Streaming<proto::NodeState>) -> Result<Option<NodeState>, Status> {
    Ok(stream.message().await?.map(wire::state))
}
