use std::time::Duration;

use super::Versions;

/// The link's times and bounds. The defaults are right everywhere but in tests.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The protocol versions that are spoken.
    pub versions: Versions,
    /// How long TCP, TLS and hello may take together.
    pub hello: Duration,
    /// How often each end pings the other over HTTP/2, also when nothing else is going on.
    pub ping: Duration,
    /// How long a ping may stay unanswered before the link counts as lost.
    pub pong: Duration,
    /// How many connections may be silent, or in the middle of their hello, at a time. One more costs the
    /// oldest of them its place.
    pub silent: usize,
    /// How many tokens are reviewed at a time; further ones wait their turn.
    pub reviews: usize,
    /// How long before a token runs out its successor is asked for.
    pub renew_ahead: Duration,
    /// How long to wait before asking again for a successor that was not there yet.
    pub renew_retry: Duration,
    /// How often a controller's name is looked up again.
    pub lookup: Duration,
    /// The shortest wait before an address is dialled again.
    pub backoff_least: Duration,
    /// The longest one.
    pub backoff_most: Duration,
    /// How often a node sends its state when nothing changes.
    pub heartbeat: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            versions: Versions::CURRENT,
            hello: Duration::from_secs(10),
            ping: Duration::from_secs(10),
            pong: Duration::from_secs(10),
            silent: 512,
            reviews: 16,
            renew_ahead: Duration::from_secs(120),
            renew_retry: Duration::from_secs(10),
            lookup: Duration::from_secs(30),
            backoff_least: Duration::from_millis(500),
            backoff_most: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
        }
    }
}
