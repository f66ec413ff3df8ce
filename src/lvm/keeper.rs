use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Group;
use crate::types::chain;

/// Writes a backup of the group's metadata onto the host after changes, many changes at a time, off
/// every caller's path. What is pending is written when the driver ends.
pub(super) async fn back_up_after_changes(group: Arc<Group>, delay: Duration, stop: CancellationToken) {
    let mut ending = false;
    while !ending {
        tokio::select! {
            biased;
            () = group.changed.notified() => ending = stop.run_until_cancelled(tokio::time::sleep(delay)).await.is_none(),
            () = stop.cancelled() => return,
        }
        back_up(&group).await;
    }
}

async fn back_up(group: &Group) {
    let Some(name) = group.name() else { return };
    match group.backend.back_up(&name, &group.devices()).await {
        Ok(()) => tracing::debug!(vg = %name, "backed up the metadata"),
        Err(error) => {
            tracing::warn!(vg = %name, error = chain(&error), "the metadata could not be backed up")
        }
    }
}
