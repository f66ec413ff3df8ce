use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What the driver has logged. It is passed on to the test's own output as it comes, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Reads `from` to its end, on a thread of its own.
    pub(super) fn of(mut from: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        let filled = log.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                drop(std::io::stderr().write_all(&chunk[..count]));
                filled.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..count]);
            }
        });
        log
    }

    /// Whether some line of it holds all of these words.
    pub(crate) fn has(&self, words: &[&str]) -> bool {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).lines().any(|line| words.iter().all(|word| line.contains(word)))
    }
}
