//! The link over real sockets: a controller's end and a node's end as they are, with a scripted judge of
//! tokens, services that do as a test says, and a proxy that can stop forwarding.

mod authority;
mod calls;
mod controller;
mod crowd;
mod desk;
mod hello;
mod loss;
mod mute;
mod node;
mod overhead;
pub(crate) mod proxy;
mod raw;
mod renewal;
mod role;
mod rotation;
mod states;
mod stub;

use std::time::Duration;

use quarry::link::Tuning;

/// No wait in a test takes longer than this.
const BOUND: Duration = Duration::from_secs(30);

/// Short times, where a test waits for them to pass.
fn brisk() -> Tuning {
    Tuning {
        ping: Duration::from_millis(200),
        pong: Duration::from_secs(2),
        backoff_least: Duration::from_millis(10),
        backoff_most: Duration::from_millis(50),
        lookup: Duration::from_millis(100),
        ..Tuning::default()
    }
}

/// Waits for something that must come.
async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, wait).await.unwrap_or_else(|_| panic!("not within {BOUND:?}: {what}"))
}
