use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stamp;
use crate::types::{GroupState, NodeState};

/// The node's state, read anew after every change, after every refusal, and every some seconds. One serves
/// all links.
#[derive(Debug, Clone)]
pub struct StateFeed {
    latest: watch::Receiver<Option<NodeState>>,
    pub(super) marks: Marks,
}

/// What tells older states from newer ones.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// The greatest generation given so far. It is given before its state is read, so that what happened
    /// before it was given is in that state.
    given: Arc<AtomicU64>,
    refused: Arc<Notify>,
}

impl Marks {
    /// The greatest generation given so far, for a refusal that was decided just now: the state of that
    /// generation may have been read before. Brings forth a newer one.
    pub(super) fn refusal(&self) -> u64 {
        let given = self.given.load(Ordering::SeqCst);
        self.refused.notify_one();
        given
    }
}

impl StateFeed {
    /// Starts to read states with `read`, which answers from memory, whenever `changes` has a new value and
    /// at least every `heartbeat`. It ends with `stop`, and with it all streams of states.
    pub fn start(
        read: impl Fn() -> Vec<GroupState> + Send + 'static,
        changes: watch::Receiver<u64>,
        heartbeat: Duration,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let (sender, latest) = watch::channel(None);
        let marks = Marks { given: Arc::new(AtomicU64::new(first())), refused: Arc::default() };
        let feed = Self { latest, marks: marks.clone() };
        tracker.spawn(stop.run_until_cancelled_owned(publish(read, changes, heartbeat, marks, sender)));
        feed
    }

    /// The states from now on, the latest at once.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<NodeState>> {
        self.latest.clone()
    }

    /// What marks refusals with the states that are older than they are. Goes around the services.
    pub fn stamp(&self) -> Stamp {
        Stamp::new(self.marks.clone())
    }
}

/// Milliseconds since 1970: more than any earlier process has counted to, since none reads a thousand
/// states a second.
fn first() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

async fn publish(
    read: impl Fn() -> Vec<GroupState>,
    mut changes: watch::Receiver<u64>,
    heartbeat: Duration,
    marks: Marks,
    sender: watch::Sender<Option<NodeState>>,
) {
    loop {
        // Before it is read: what changes meanwhile is for the next round.
        changes.mark_unchanged();
        let generation = marks.given.fetch_add(1, Ordering::SeqCst) + 1;
        sender.send_replace(Some(NodeState { generation, groups: read() }));
        tokio::select! {
            () = changed(&mut changes) => {}
            () = marks.refused.notified() => {}
            () = sleep(heartbeat) => {}
        }
    }
}

async fn changed(changes: &mut watch::Receiver<u64>) {
    if changes.changed().await.is_err() {
        // Nothing will change any more.
        std::future::pending().await
    }
}
