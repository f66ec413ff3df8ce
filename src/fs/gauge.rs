use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::{FsError, blocking};

/// How many questions may wait at one mount point. The kubelet asks each minute, and a thread that a dead
/// file system holds never comes back.
const WAITING: usize = 3;

/// The one that all questions of this process go through, since the threads are the process's too.
pub(super) static GAUGE: LazyLock<Gauge> = LazyLock::new(|| Gauge::new(Duration::from_secs(5)));

/// Asks mounted file systems, and does not wait for those that do not answer.
#[derive(Debug)]
pub(super) struct Gauge {
    places: Mutex<HashMap<PathBuf, Arc<Semaphore>>>,
    limit: Duration,
}

impl Gauge {
    /// Waits for at most `limit` per question.
    fn new(limit: Duration) -> Self {
        Self { places: Mutex::default(), limit }
    }

    /// Puts a question to a mount point on a thread of its own.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        path: &Path,
        question: impl FnOnce(&Path) -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let overdue = || FsError::Overdue { path: path.to_owned(), limit: self.limit };
        let (places, owned) = (self.places_at(path), path.to_owned());
        let answer = async {
            // A place is given back when the thread is done, and not when its caller has had enough.
            let place = places.acquire_owned().await.map_err(|_| overdue())?;
            blocking(move || {
                let answer = question(&owned);
                drop(place);
                answer
            })
            .await
        };
        tokio::time::timeout(self.limit, answer).await.map_err(|_| overdue())?
    }

    /// The places at a mount point. Those that nobody has or waits for are forgotten.
    fn places_at(&self, path: &Path) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        Arc::clone(places.entry(path.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(WAITING))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use tokio::task::JoinSet;

    #[tokio::test]
    async fn what_does_not_answer_holds_a_few_threads_and_no_more() {
        let gauge = Gauge::new(Duration::from_millis(20));
        let path = Path::new("/dead");
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let begun = Arc::new(AtomicUsize::new(0));
        for _ in 0..WAITING + 2 {
            let (gate, begun) = (Arc::clone(&gate), Arc::clone(&begun));
            let answer = gauge
                .ask(path, move |_| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let _ = gate.lock().unwrap().recv();
                    Ok(())
                })
                .await;
            assert!(matches!(answer, Err(FsError::Overdue { .. })));
        }
        answers(&gauge, Path::new("/alive")).await;
        drop(release);
        answers(&gauge, path).await;
        assert!(begun.load(Ordering::Relaxed) <= WAITING);
        assert!(gauge.places.lock().unwrap().len() <= 2);
    }

    #[tokio::test]
    async fn many_questions_at_once_are_all_answered_by_what_does_answer() {
        let mut asked = JoinSet::new();
        for _ in 0..8 * WAITING {
            asked.spawn(GAUGE.ask(Path::new("/alive"), |_| {
                std::thread::yield_now();
                Ok(())
            }));
        }
        assert!(asked.join_all().await.iter().all(Result::is_ok));
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
