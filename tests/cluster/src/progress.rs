//! Words for the person who waits, and the times of what was waited for.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// One line on standard error, so that standard output holds results alone.
pub fn say(line: &str) {
    // Nobody to tell is no reason to stop.
    drop(writeln!(io::stderr(), "cluster: {line}"));
}

/// How long each part of something took.
#[derive(Debug, Default)]
pub struct Phases(Vec<(String, Duration)>);

impl Phases {
    /// Runs one part and writes down its time, also when it fails.
    pub(crate) async fn time<T>(&mut self, name: &str, part: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = part.await;
        self.add(name, start.elapsed());
        result
    }

    /// Adds a part that was timed elsewhere, and tells of it.
    pub(crate) fn add(&mut self, name: &str, time: Duration) {
        say(&format!("{name}: {:.1} s", time.as_secs_f64()));
        self.0.push((name.to_owned(), time));
    }

    /// All parts in one line.
    pub fn summary(&self) -> String {
        let parts: Vec<_> =
            self.0.iter().map(|(name, time)| format!("{name} {:.1} s", time.as_secs_f64())).collect();
        parts.join(", ")
    }
}
