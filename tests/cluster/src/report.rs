//! What came out: a table for people, and a file for programs.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::{Error, paths, say};

/// What a scenario that passed has to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Remark {
    note: String,
    /// In seconds, for a scenario that measures something; it stands in the place of the scenario's own time.
    measured: Option<f64>,
}

impl Remark {
    /// The remark of a scenario that has measured this.
    pub(crate) fn measured(seconds: f64, note: String) -> Remark {
        Remark { note, measured: Some(seconds) }
    }
}

impl From<String> for Remark {
    fn from(note: String) -> Remark {
        Remark { note, measured: None }
    }
}

fn rounded(seconds: f64, parts: f64) -> f64 {
    (seconds * parts).round() / parts
}

/// The outcome of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Outcome {
    scenario: String,
    passed: bool,
    seconds: f64,
    note: String,
}

impl Outcome {
    pub(crate) fn new(scenario: &str, time: Duration, result: Result<Remark, Error>) -> Outcome {
        let passed = result.is_ok();
        let Remark { note, measured } = result.unwrap_or_else(|error| Remark::from(error.chain()));
        let seconds = match measured {
            Some(seconds) => rounded(seconds, 100.0),
            None => rounded(time.as_secs_f64(), 10.0),
        };
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
    fn what_was_measured_stands_in_the_place_of_the_time() {
        let remark = Remark::measured(-0.123, String::new());
        let outcome = Outcome::new("time", Duration::from_secs(60), Ok(remark));
        assert_eq!((outcome.seconds, outcome.passed()), (-0.12, true));
    }

    #[test]
    fn the_table_ends_with_the_counts() {
        let good = Outcome::new("one", Duration::from_millis(1_240), Ok("fine".to_owned().into()));
        let bad = Outcome::new("second", Duration::from_secs(60), Err(Error::other("no\nreally")));
        assert_eq!(
            table(&[good, bad]),
            "one     passed     1.2 s  fine\nsecond  FAILED    60.0 s  no\ncluster: 1 passed, 1 failed"
        );
    }
}
