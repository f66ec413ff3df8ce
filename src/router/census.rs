use std::sync::Arc;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Fleet;
use crate::cluster::Replica;
use crate::types::chain;

/// Writes down which nodes this replica has links to, again and again and after every change, until `stop`
/// is cancelled. The record goes at the end.
pub async fn census(fleet: Arc<Fleet>, mut replica: Replica, stop: CancellationToken) {
    let mut changes = fleet.changes();
    loop {
        changes.mark_unchanged();
        if let Err(error) = replica.record(&fleet.objects()).await {
            tracing::warn!(error = chain(&error), "this replica's links cannot be recorded");
        }
        let news = async {
            sleep(fleet.pace().gather).await;
            // The fleet outlives this.
            let _ = changes.changed().await;
        };
        tokio::select! {
            () = stop.cancelled() => break,
            _ = timeout(fleet.pace().round, news) => {}
        }
    }
    if let Err(error) = replica.retire().await {
        tracing::warn!(error = chain(&error), "this replica's record of its links cannot be removed");
    }
}
