use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Fleet;
use crate::link::Session;

/// Takes note of links as they come, of what they tell, and of their end. Runs until no more come, or
/// `stop` is cancelled.
pub async fn take_in(
    fleet: Arc<Fleet>,
    mut sessions: mpsc::Receiver<Session>,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    while let Some(Some(session)) = stop.run_until_cancelled(sessions.recv()).await {
        fleet.linked(&session);
        let listen = Box::pin(listen(Arc::clone(&fleet), session));
        tracker.spawn(stop.clone().run_until_cancelled_owned(listen));
    }
}

/// Listens to a link until it has ended.
async fn listen(fleet: Arc<Fleet>, session: Session) {
    let (mut states, ended) = (session.states(), session.ended());
    loop {
        if let Some(state) = states.borrow_and_update().clone() {
            fleet.told(&session, state);
        }
        tokio::select! {
            biased;
            () = ended.cancelled() => break,
            changed = states.changed() => if changed.is_err() {
                // No more states will come, and so will the end.
                ended.cancelled().await;
                break;
            }
        }
    }
    fleet.ended(&session);
}
