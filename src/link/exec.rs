use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Runs what belongs to one connection, for as long as it lives.
#[derive(Debug, Clone)]
pub(super) struct Exec {
    pub(super) tracker: TaskTracker,
    /// Cancelled when the connection is gone, or is to go at once.
    pub(super) gone: CancellationToken,
}

impl<F> Executor<F> for Exec
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, work: F) {
        self.tracker.spawn(self.gone.clone().run_until_cancelled_owned(Box::pin(work)));
    }
}
