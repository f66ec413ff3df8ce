//! Serving: the socket, and what stands around every call on it.
//!
//! ```text
//!   socket ── accept ── spans ── detach ── report ── the services
//! ```
//!
//! [`serve`] takes everything as arguments, so that a test can serve what it likes where it likes.
//! Nothing here knows what a call does.

mod accept;
mod address;
mod calls;
mod deadline;
mod detach;
mod endpoint;
mod health;
mod measure;
mod socket;
mod trace;

#[cfg(test)]
mod tests;

pub use address::reachable;
pub use calls::{Calls, Wrapped};
pub use detach::{Detach, Detached};
pub use endpoint::Endpoint;
pub use health::{Health, HealthError};
pub use measure::Measure;
pub use socket::{Socket, SocketError};
pub use trace::{Report, Reported, Spanned, Spans};

use std::pin::pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::Server;

use accept::Accept;

/// How long connections may stay once no handler runs any more. A caller that answers closes at once;
/// one that is frozen would otherwise hold up the end for the whole grace period.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serving that came to an end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("the gRPC server failed")]
    Transport(#[from] tonic::transport::Error),
    /// It ended although nobody asked it to.
    #[error("the gRPC server ended by itself")]
    Ended,
}

/// How a server's work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every handler, and all other work on the tracker, ran to its end.
    Complete,
    /// The grace period was over first.
    Early {
        /// How many tasks were still at work.
        left: usize,
    },
}

/// Serves `routes` on `socket` until `shutdown` is cancelled, with what `calls` puts around every call.
///
/// At shutdown the socket is closed and removed at once, so that new callers are refused and a
/// successor can bind it. Then all that runs on the calls' tracker is waited for, for at most `grace`;
/// the tracker is closed.
///
/// # Errors
/// The server ended before it was asked to.
pub async fn serve(
    socket: Socket,
    routes: Routes,
    calls: Calls,
    shutdown: CancellationToken,
    grace: Duration,
) -> Result<Drained, ServeError> {
    let server = Server::builder()
        .layer(calls.spans())
        .layer(calls.detach())
        .layer(calls.report())
        .add_routes(routes)
        .serve_with_incoming_shutdown(Accept::new(socket), shutdown.clone().cancelled_owned());
    let mut server = pin!(server);
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        result = &mut server => return Err(result.err().map_or(ServeError::Ended, ServeError::from)),
    }
    let tracker = calls.tracker();
    tracker.close();
    tracing::info!(handlers = tracker.len(), "stopping: no new calls; waiting for those that run");
    let all_done = async {
        tokio::select! {
            result = &mut server => {
                tracker.wait().await;
                result.map_err(ServeError::from)
            }
            () = stays_idle(tracker) => Ok(()),
        }
    };
    match timeout(grace, all_done).await {
        Ok(result) => result.map(|()| Drained::Complete),
        Err(_) => Ok(ended_early(tracker.len(), grace)),
    }
}

/// Waits until no work is left, and none has come by the time that callers have had to go.
async fn stays_idle(tracker: &TaskTracker) {
    loop {
        tracker.wait().await;
        sleep(FAREWELL).await;
        if tracker.is_empty() {
            return;
        }
    }
}

fn ended_early(left: usize, grace: Duration) -> Drained {
    tracing::warn!(left, grace_s = grace.as_secs(), "the grace period is over: leaving work undone");
    Drained::Early { left }
}
