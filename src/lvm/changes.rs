use tokio::sync::watch;

/// Counts the changes of groups, for those who want to know that there was one.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes(watch::Sender<u64>);

impl Changes {
    pub(super) fn tell(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
