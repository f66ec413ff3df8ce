use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use super::{FsError, blocking};

/// How many questions may wait at one mount point. The kubelet asks each minute, and a thread that a dead
/// file system holds never comes back.
const WAITING: usize = 3;

/// The one that all questions of this process go through, since the threads are the process's too.
pub(super) static GAUGE: LazyLock<Gauge> = LazyLock::new(|| Gauge::new(Duration::from_secs(5)));

/// Asks mounted file systems, and does not wait for those that do not answer.
#[derive(Debug)]
pub(super) struct Gauge {
    waiting: Arc<Mutex<HashMap<PathBuf, usize>>>,
    limit: Duration,
}

impl Gauge {
    /// Waits for at most `limit` per question.
    fn new(limit: Duration) -> Self {
        Self { waiting: Arc::default(), limit }
    }

    /// Puts a question to a mount point on a thread of its own.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        path: &Path,
        question: impl FnOnce(&Path) -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let overdue = || FsError::Overdue { path: path.to_owned(), limit: self.limit };
        let place = Place::take(&self.waiting, path).ok_or_else(overdue)?;
        let answer = blocking(move || question(&place.path));
        tokio::time::timeout(self.limit, answer).await.map_err(|_| overdue())?
    }
}

/// One question's place in the count; it is given back when the question's thread is done with it.
struct Place {
    waiting: Arc<Mutex<HashMap<PathBuf, usize>>>,
    path: PathBuf,
}

impl Place {
    fn take(waiting: &Arc<Mutex<HashMap<PathBuf, usize>>>, path: &Path) -> Option<Self> {
        let mut counts = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(path.to_owned()).or_default();
        if *count >= WAITING {
            return None;
        }
        *count += 1;
        Some(Self { waiting: Arc::clone(waiting), path: path.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.path) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn what_does_not_answer_holds_a_few_threads_and_no_more() {
        let gauge = Gauge::new(Duration::from_millis(20));
        let path = Path::new("/dead");
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for asked in 0..WAITING + 2 {
            let gate = Arc::clone(&gate);
            let answer = gauge
                .ask(path, move |_| {
                    let _ = gate.lock().unwrap().recv();
                    Ok(())
                })
                .await;
            assert!(matches!(answer, Err(FsError::Overdue { .. })));
            let waiting = gauge.waiting.lock().unwrap()[path];
            assert_eq!(waiting, WAITING.min(asked + 1));
        }
        answers(&gauge, Path::new("/alive")).await;
        drop(release);
        answers(&gauge, path).await;
    }

    /// Asks again and again: a busy machine may let the limit pass before a thread has begun.
    async fn answers(gauge: &Gauge, path: &Path) {
        let asked = async {
            while gauge.ask(path, |_| Ok(())).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), asked).await.unwrap();
    }
}
