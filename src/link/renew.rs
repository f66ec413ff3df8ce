use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::{ReviewError, Reviewed, Reviewer, Session, Token, Tuning};
use crate::proto::quarry::v1::IdentifyRequest;
use crate::proto::quarry::v1::agent_client::AgentClient;

/// Sees to it that the link's token never runs out: asks the node for a new one in time, and has it
/// reviewed. Returns only when the link must end, with the reason.
pub(super) async fn keep(
    session: &Session,
    mut expires: SystemTime,
    reviewer: &dyn Reviewer,
    reviews: &Semaphore,
    tuning: &Tuning,
) -> String {
    loop {
        sleep(left(expires).saturating_sub(tuning.renew_ahead)).await;
        // A token that is about to run out leaves less time than usual to find its successor.
        match timeout(left(expires), renewed(session, expires, reviewer, reviews, tuning)).await {
            Ok(Ok(later)) => expires = later,
            Ok(Err(why)) => return why,
            Err(_) => return "the node's token has run out, and it has sent no newer one".to_owned(),
        }
    }
}

fn left(expires: SystemTime) -> Duration {
    expires.duration_since(SystemTime::now()).unwrap_or_default()
}

/// Asks until there is a token that lasts longer than the present one. The kubelet renews a token's file
/// at its own pace.
async fn renewed(
    session: &Session,
    expires: SystemTime,
    reviewer: &dyn Reviewer,
    reviews: &Semaphore,
    tuning: &Tuning,
) -> Result<SystemTime, String> {
    loop {
        let asked = timeout(tuning.hello, ask(session, reviewer, reviews)).await;
        match asked.unwrap_or_else(|_| Err(ReviewError::Unavailable("it took too long".to_owned()))) {
            Ok(reviewed) if reviewed.node != *session.object => {
                return Err(format!("the node's new token is that of node {}", reviewed.node));
            }
            Ok(reviewed) if reviewed.expires > expires => return Ok(reviewed.expires),
            Ok(_) => tracing::debug!(node = %session.node, link = session.id, "no newer token yet"),
            Err(ReviewError::Refused(why)) => {
                return Err(format!("the node's new token is refused: {why}"));
            }
            Err(ReviewError::Unavailable(why)) => {
                tracing::warn!(node = %session.node, link = session.id, why, "the token cannot be renewed now");
            }
        }
        sleep(tuning.renew_retry).await;
    }
}

async fn ask(
    session: &Session,
    reviewer: &dyn Reviewer,
    reviews: &Semaphore,
) -> Result<Reviewed, ReviewError> {
    let failed = |status: Status| ReviewError::Unavailable(status.message().to_owned());
    let answer = AgentClient::new(session.channel()).identify(IdentifyRequest {}).await.map_err(failed)?;
    let _turn = reviews.acquire().await;
    reviewer.review(&Token::new(answer.into_inner().token)).await
}
