use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A token that SIGTERM and SIGINT cancel: the former comes from the kubelet, the latter from Ctrl-C.
///
/// # Errors
/// The system does not let the signals be caught.
pub(super) fn shutdown() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let cancel = token.clone();
    // A tracker of its own: nobody waits for a signal that need not come.
    TaskTracker::new().spawn(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "asked to stop");
        cancel.cancel();
    });
    Ok(token)
}
