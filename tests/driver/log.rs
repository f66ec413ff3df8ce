use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::until;

/// What the driver has logged. It is passed on to the test's own output as it comes, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Reads `from` on a thread of its own, which ends with it.
    pub(super) fn of(mut from: impl Read + Send + 'static) -> (Self, JoinHandle<()>) {
        let log = Self::default();
        let filled = log.clone();
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                drop(std::io::stderr().write_all(&chunk[..count]));
                filled.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..count]);
            }
        });
        (log, reader)
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// How many lines of it hold all of these words.
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        self.text().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// Whether some line of it holds all of these words.
    pub(crate) fn has(&self, words: &[&str]) -> bool {
        self.count(words) > 0
    }

    /// Waits until some line holds all of these words.
    pub(crate) async fn soon(&self, words: &[&str]) {
        until(&format!("the driver logs {words:?}"), async || self.has(words)).await;
    }
}
