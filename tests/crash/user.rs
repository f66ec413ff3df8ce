//! A pod that uses a volume all the time.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::driver::until;

/// What it writes.
const DATA: [u8; 10_000] = [7; 10_000];

/// Somebody who writes a file again and again, and makes sure that it is on the disk.
pub(super) struct User {
    file: PathBuf,
    rounds: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl User {
    pub(super) fn start(file: PathBuf) -> Self {
        let (rounds, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (file, rounds, stop) = (file.clone(), Arc::clone(&rounds), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut file = File::create(&file).unwrap();
                    file.write_all(&DATA).and_then(|()| file.sync_all()).unwrap();
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { file, rounds, stop, thread }
    }

    /// Holds that it goes on: two more rounds, since one may have been over but for the counting.
    pub(super) async fn goes_on(&self, when: &str) {
        let wanted = self.rounds.load(Ordering::Relaxed) + 2;
        let what = format!("the volume's user goes on {when}");
        until(&what, async || self.rounds.load(Ordering::Relaxed) >= wanted).await;
    }

    /// Ends it, and holds that what it wrote is there.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        assert_eq!(fs::read(self.file).unwrap(), DATA);
    }
}
