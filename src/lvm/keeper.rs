use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Group;
use crate::types::chain;

/// How many times its delay a backup is put off by further changes.
const LONGEST: u32 = 10;

/// Writes a backup of the group's metadata onto the host when there was no change for as long as `delay`, or
/// at last under changes without end: a backup is an lvm process, which would work beside every one of them.
/// It is off every caller's path. What is pending is written when the driver ends.
pub(super) async fn back_up_after_changes(group: Arc<Group>, delay: Duration, stop: CancellationToken) {
    let mut ending = false;
    while !ending {
        tokio::select! {
            biased;
            () = group.changed.notified() => ending = stop.run_until_cancelled(quiet(&group, delay)).await.is_none(),
            () = stop.cancelled() => return,
        }
        back_up(&group).await;
    }
}

/// Waits until the group was left alone for a while.
async fn quiet(group: &Group, delay: Duration) {
    let end = Instant::now().checked_add(delay.saturating_mul(LONGEST));
    while end.is_none_or(|end| Instant::now() < end) && timeout(delay, group.changed.notified()).await.is_ok()
    {
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

#[cfg(test)]
mod tests {
    use tokio::time::sleep;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::lvm::changes::Changes;
    use crate::lvm::scripted::{Event, ScriptedBackend};
    use crate::lvm::{Backend, sightings};
    use crate::types::Bytes;

    const DELAY: Duration = Duration::from_secs(2);

    async fn kept() -> (Arc<ScriptedBackend>, Arc<Group>) {
        let lvm = ScriptedBackend::new();
        lvm.add_vg("vg0", &[("/dev/sda", 100)]);
        let sighting = sightings(&lvm.look().await.unwrap(), None).remove(0);
        let backend: Arc<ScriptedBackend> = Arc::clone(&lvm);
        (lvm, Group::new(backend, sighting, Bytes::ZERO, DELAY, Changes::default()))
    }

    fn backups(lvm: &ScriptedBackend) -> usize {
        lvm.count(|event| matches!(event, Event::BackUp(_)))
    }

    #[tokio::test(start_paused = true)]
    async fn changes_in_a_row_make_one_backup_and_changes_without_end_make_one_now_and_then() {
        let (lvm, group) = kept().await;
        let stop = CancellationToken::new();
        let tracker = TaskTracker::new();
        tracker.spawn(back_up_after_changes(Arc::clone(&group), DELAY, stop.clone()));
        for _ in 0..8 {
            group.changed.notify_one();
            sleep(DELAY / 2).await;
        }
        assert_eq!(backups(&lvm), 0);
        sleep(DELAY).await;
        assert_eq!(backups(&lvm), 1);
        for _ in 0..LONGEST * 2 + 2 {
            group.changed.notify_one();
            sleep(DELAY / 2).await;
        }
        assert_eq!(backups(&lvm), 2);
        sleep(DELAY * 2).await;
        assert_eq!(backups(&lvm), 3);
        group.changed.notify_one();
        sleep(DELAY / 2).await;
        stop.cancel();
        tracker.close();
        tracker.wait().await;
        assert_eq!(backups(&lvm), 4, "what is pending is written at the end");
    }
}
