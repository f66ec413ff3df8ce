//! What came out: a table for people, and a file for programs.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::{Error, paths, say};

/// The outcome of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Outcome {
    scenario: String,
    passed: bool,
    seconds: f64,
    note: String,
}

impl Outcome {
    pub(crate) fn new(scenario: &str, time: Duration, result: Result<String, Error>) -> Outcome {
        let passed = result.is_ok();
        let note = result.unwrap_or_else(|error| error.chain());
        let seconds = (time.as_secs_f64() * 10.0).round() / 10.0;
        Outcome { scenario: scenario.to_owned(), passed, seconds, note }
    }

    pub(crate) fn passed(&self) -> bool {
        self.passed
    }

    /// Adds a remark to the note.
    pub(crate) fn remark(&mut self, remark: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(remark);
    }

    /// Tells at once how it ended; the table comes last.
    pub(crate) fn tell(&self) {
        let how = if self.passed { "passed" } else { "FAILED" };
        say(&format!("scenario {} {how} after {} s: {}", self.scenario, self.seconds, self.note));
    }
}

/// Writes the file.
pub(crate) fn save(outcomes: &[Outcome], path: &Path) -> Result<(), Error> {
    let text = serde_json::to_vec_pretty(outcomes).map_err(Error::other)?;
    paths::write(path, text)
}

/// Prints the table and, as the last line, the counts.
pub(crate) fn print(outcomes: &[Outcome]) -> Result<(), Error> {
    writeln!(io::stdout(), "{}", table(outcomes)).map_err(Error::io("print the results"))
}

fn table(outcomes: &[Outcome]) -> String {
    let width = outcomes.iter().map(|outcome| outcome.scenario.len()).max().unwrap_or_default();
    let mut lines: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let Outcome { scenario, seconds, note, .. } = outcome;
            let how = if outcome.passed { "passed" } else { "FAILED" };
            // Whole messages have been told already.
            let note = note.lines().next().unwrap_or_default();
            format!("{scenario:width$}  {how}  {seconds:6.1} s  {note}")
        })
        .collect();
    let passed = outcomes.iter().filter(|outcome| outcome.passed).count();
    lines.push(format!("cluster: {passed} passed, {} failed", outcomes.len() - passed));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_counts() {
        let good = Outcome::new("one", Duration::from_millis(1_240), Ok("fine".into()));
        let bad = Outcome::new("second", Duration::from_secs(60), Err(Error::other("no\nreally")));
        assert_eq!(
            table(&[good, bad]),
            "one     passed     1.2 s  fine\nsecond  FAILED    60.0 s  no\ncluster: 1 passed, 1 failed"
        );
    }
}
