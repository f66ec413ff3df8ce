//! Guests that hang: the clock of their kernel stands still while the host's goes on.

use std::sync::Arc;
use std::time::Duration;

use lab::Running;
use tokio::time::{Instant, sleep};

use super::Node;
use crate::say;

/// How often to look at a guest's clock.
const PERIOD: Duration = Duration::from_secs(5);
/// A clock that has stood still for so long will not move again. A guest that merely waits for a busy host's processor
/// moves on much sooner.
const STANDSTILL: Duration = Duration::from_secs(40);

/// Looks after a node for ever, and starts it again when it has died or hangs.
pub(crate) async fn watch(node: Arc<Node>) {
    let mut watched: Option<(Arc<Running>, Clock)> = None;
    loop {
        sleep(PERIOD).await;
        let Some(guest) = node.guest() else {
            watched = None;
            continue;
        };
        let (_, mut clock) = watched
            .take()
            .filter(|(old, _)| Arc::ptr_eq(old, &guest))
            .unwrap_or_else(|| (guest.clone(), Clock::new()));
        let why = if guest.has_ended() {
            "died"
        } else if clock.has_stopped(&guest).await {
            "hung"
        } else {
            watched = Some((guest, clock));
            continue;
        };
        if let Err(error) = node.recover(&guest, why).await {
            say(&error.chain());
        }
    }
}

/// A guest's clock, as it was when somebody last looked.
#[derive(Debug)]
pub(super) struct Clock {
    shown: Duration,
    /// When it was first seen to show that, by the host's clock.
    since: Instant,
    /// When to look again: to ask a guest takes some of its time.
    next_look: Instant,
}

impl Clock {
    /// The clock of a guest that is just being started.
    pub(super) fn new() -> Clock {
        let now = Instant::now();
        Clock { shown: Duration::ZERO, since: now, next_look: now + PERIOD }
    }

    /// Whether the clock has not moved for so long that it never will. One that cannot be read has not moved either.
    pub(super) async fn has_stopped(&mut self, guest: &Arc<Running>) -> bool {
        if Instant::now() >= self.next_look {
            let asked = guest.clone();
            let answer = tokio::task::spawn_blocking(move || asked.uptime()).await;
            self.note(answer.ok().and_then(Result::ok), Instant::now());
        }
        Instant::now() - self.since > STANDSTILL
    }

    fn note(&mut self, shows: Option<Duration>, now: Instant) {
        self.next_look = now + PERIOD;
        if let Some(shows) = shows.filter(|shows| *shows != self.shown) {
            self.shown = shows;
            self.since = now;
        }
    }
}
