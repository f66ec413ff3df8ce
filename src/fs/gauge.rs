use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::health::{self, Health};
use super::usage::{self, Usage};
use super::{FsError, blocking};

/// How many questions may wait at one mount point. The kubelet asks each minute, and a thread that a dead
/// file system holds never comes back.
const WAITING: usize = 3;

/// Asks mounted file systems, and does not wait for those that do not answer.
#[derive(Debug, Clone)]
pub struct Gauge {
    waiting: Arc<Mutex<HashMap<PathBuf, usize>>>,
    limit: Duration,
}

impl Gauge {
    /// Waits for at most `limit` per question.
    pub fn new(limit: Duration) -> Self {
        Self { waiting: Arc::default(), limit }
    }

    /// How full the file system at a mount point is (statvfs(3)).
    ///
    /// # Errors
    /// [`FsError::Overdue`]: it does not answer, or did not answer several times before; or it fails.
    pub async fn usage(&self, mount_point: &Path) -> Result<Usage, FsError> {
        self.ask(mount_point, usage::now).await
    }

    /// Whether the file system at a mount point still works. It costs a flush of the disk at most.
    pub async fn health(&self, mount_point: &Path) -> Health {
        let asked = self.ask(mount_point, |path| Ok(health::now(path))).await;
        asked.unwrap_or_else(|error| Health::Dead(error.to_string()))
    }

    async fn ask<T: Send + 'static>(
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
        assert!(gauge.ask(Path::new("/alive"), |_| Ok(())).await.is_ok());
        drop(release);
        let back = async {
            while gauge.ask(path, |_| Ok(())).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), back).await.unwrap();
    }

    #[tokio::test]
    async fn a_living_file_system_answers() {
        let folder = tempfile::tempdir().unwrap();
        let gauge = Gauge::new(Duration::from_secs(10));
        let usage = gauge.usage(folder.path()).await.unwrap();
        assert!(usage.bytes.total >= usage.bytes.used + usage.bytes.available);
        assert_eq!(gauge.health(folder.path()).await, Health::Alive);
        assert!(gauge.usage(Path::new("/nonexistent")).await.is_err());
        assert!(matches!(gauge.health(Path::new("/nonexistent")).await, Health::Dead(_)));
        assert!(gauge.waiting.lock().unwrap().is_empty());
    }
}
