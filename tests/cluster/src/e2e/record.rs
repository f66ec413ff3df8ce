//! What came of each spec, written down as soon as it is known: the next run goes on from there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ginkgo::{Spec, State};
use super::skips;
use crate::digest::sha256;
use crate::{Error, Paths, paths};

/// How far a spec has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Waiting,
    Passed,
    Failed,
    Skipped,
}

/// What is known of one spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The part of the suite that it belongs to.
    pub(super) suite: String,
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    /// Why it failed or was skipped.
    pub(super) note: String,
    /// The digest of the driver's image that it ran with; none if it did not run.
    pub(super) driver: Option<String>,
}

impl Entry {
    /// Of a spec that has not run.
    fn new(suite: String, outcome: Outcome, note: &str) -> Entry {
        Entry { suite, outcome, seconds: 0.0, note: note.to_owned(), driver: None }
    }
}

/// All specs for the driver, by their names.
#[derive(Debug)]
pub(super) struct Record {
    paths: Paths,
    pub(super) entries: BTreeMap<String, Entry>,
}

impl Record {
    /// What earlier runs have written down; nothing if there were none.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(super) fn load(paths: &Paths) -> Result<Record, Error> {
        let file = file(paths);
        let entries = match file.is_file() {
            false => BTreeMap::new(),
            true => serde_json::from_str(&paths::read(&file)?).map_err(|error| {
                Error::other(format!("{} cannot be read: remove it ({error})", file.display()))
            })?,
        };
        Ok(Record { paths: paths.clone(), entries })
    }

    /// Takes over which specs there are: those that are new wait, and those that are gone are forgotten.
    pub(super) fn adopt(&mut self, specs: &[Spec]) {
        let mut known = std::mem::take(&mut self.entries);
        for spec in specs {
            let ran = known.remove(&spec.name).filter(|entry| entry.driver.is_some());
            let entry = match (skips::left_out(&spec.name), ran) {
                (Some(why), _) => Entry::new(spec.suite.clone(), Outcome::Skipped, why),
                (None, Some(ran)) => ran,
                (None, None) => Entry::new(spec.suite.clone(), Outcome::Waiting, ""),
            };
            self.entries.insert(spec.name.clone(), entry);
        }
    }

    /// Lets a spec run again that has run and ended so.
    pub(super) fn forget(&mut self, name: &str, outcomes: &[Outcome]) {
        let entry = self.entries.get_mut(name).filter(|entry| entry.driver.is_some());
        if let Some(entry) = entry.filter(|entry| outcomes.contains(&entry.outcome)) {
            *entry = Entry::new(entry.suite.clone(), Outcome::Waiting, "");
        }
    }

    /// Writes down how a spec ended. Returns whether it has ended.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn settle(&mut self, spec: &Spec, driver: &str) -> Result<bool, Error> {
        let Some((outcome, note)) = judge(spec) else { return Ok(false) };
        let seconds = (spec.seconds * 10.0).round() / 10.0;
        let driver = Some(driver.to_owned());
        let entry = Entry { suite: spec.suite.clone(), outcome, seconds, note, driver };
        self.entries.insert(spec.name.clone(), entry);
        self.save()?;
        Ok(true)
    }

    /// How many specs have come so far.
    pub(super) fn count(&self, outcome: Outcome) -> usize {
        self.entries.values().filter(|entry| entry.outcome == outcome).count()
    }

    /// Writes all of it, and the counts.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn save(&self) -> Result<(), Error> {
        let file = file(&self.paths);
        paths::make_folder(&self.paths.e2e())?;
        // Whole, whenever it is there.
        let unfinished = file.with_extension("unfinished");
        paths::write(&unfinished, serde_json::to_vec_pretty(&self.entries).map_err(Error::other)?)?;
        fs::rename(&unfinished, &file).map_err(Error::at("write", &file))?;
        let [passed, failed, skipped] =
            [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(|outcome| self.count(outcome));
        let counts = json!({ "passed": passed, "failed": failed, "skipped": skipped });
        paths::write(&self.paths.e2e_results(), counts.to_string() + "\n")
    }
}

/// What a spec that has ended comes to. One that is skipped without a reason of ours has failed, and so has one that ran
/// though the page says that it is skipped: the page must stay true.
fn judge(spec: &Spec) -> Option<(Outcome, String)> {
    let why = spec.why.clone();
    match (spec.state, skips::expected(&spec.name)) {
        (State::NotRun, _) => None,
        (State::Failed, _) => Some((Outcome::Failed, why)),
        (State::Passed, None) => Some((Outcome::Passed, String::new())),
        (State::Passed, Some(reason)) => {
            Some((Outcome::Failed, format!("ran, though it is expected to be skipped: {reason}")))
        }
        (State::Skipped, Some(reason)) => Some((Outcome::Skipped, reason.to_owned())),
        (State::Skipped, None) => Some((Outcome::Failed, format!("skipped, and not expected to be: {why}"))),
    }
}

fn file(paths: &Paths) -> PathBuf {
    paths.e2e().join("results.json")
}

/// Where the words of a spec are. They stay if it failed or came to no end.
pub(super) fn log(paths: &Paths, name: &str) -> PathBuf {
    let digest = sha256(name.as_bytes());
    paths.e2e_logs().join(format!("{}.log", digest.get(..12).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    /// In a folder of its own.
    fn record(name: &str) -> (Paths, Record) {
        let target = std::env::temp_dir().join(format!("e2e-record-{name}-{}", std::process::id()));
        let paths = Paths::of(target);
        let record = Record::load(&paths).unwrap();
        (paths, record)
    }

    #[test]
    fn the_next_run_goes_on_where_this_one_stopped() {
        let (paths, mut record) = record("on");
        let spec = Spec::of;
        let all = [spec("a", State::Passed), spec("b", State::Failed), spec("c", State::NotRun)];
        record.adopt(&all);
        let settled: Vec<_> = all.iter().map(|spec| record.settle(spec, "d1").unwrap()).collect();
        assert_eq!(settled, [true, true, false]);
        assert_eq!(paths::read(&paths.e2e_results()).unwrap(), "{\"failed\":1,\"passed\":1,\"skipped\":0}\n");

        let mut next = Record::load(&paths).unwrap();
        next.adopt(&[all[0].clone(), all[1].clone(), spec("d", State::NotRun)]);
        let outcomes: Vec<_> = next.entries.values().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes, [Outcome::Passed, Outcome::Failed, Outcome::Waiting]);
        all.iter().for_each(|spec| next.forget(&spec.name, &[Outcome::Failed]));
        assert_eq!(next.count(Outcome::Waiting), 2);
        fs::remove_dir_all(paths.e2e().parent().unwrap()).unwrap();
    }

    #[test]
    fn skips_are_only_those_that_have_a_reason() {
        let judged = |name, state| judge(&Spec::of(name, state)).map(|(outcome, _)| outcome);
        assert_eq!(judged("a", State::Skipped), Some(Outcome::Failed));
        let expected = skips::EXPECTED[0].fragment;
        assert_eq!(judged(expected, State::Skipped), Some(Outcome::Skipped));
        assert_eq!(judged(expected, State::Passed), Some(Outcome::Failed));
    }
}
