//! The suite's processes: each runs one spec after another until none is left, or the time is up.
//!
//! A process of the suite is up in two seconds and a spec takes a minute, so each spec has a process of its own: what
//! came of it is known as soon as it ends, and its log holds nothing else.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use futures_util::future::try_join_all;
use nix::sys::signal::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::record::{Outcome, Record, log};
use super::{Work, ginkgo};
use crate::program::Daemon;
use crate::{Cluster, Error, Paths, paths, say};

/// How long before the end the last specs are given up, so that there is time to take the cluster down.
pub(super) const RESERVE: Duration = Duration::from_secs(120);

/// All that those who run specs share.
struct Shared<'a> {
    paths: &'a Paths,
    cluster: &'a Cluster,
    driver: &'a str,
    deadline: Instant,
    specs: Mutex<VecDeque<String>>,
    record: Mutex<Record>,
}

/// Runs specs, first those that may run side by side, then the others one by one. Stops at the deadline: what was not
/// finished then is left to the next run.
///
/// # Errors
///
/// When something else than a spec has failed.
pub(super) async fn all(
    paths: &Paths,
    cluster: &Cluster,
    work: &Work,
    deadline: Instant,
) -> Result<(), Error> {
    let record = Mutex::new(Record::load(paths)?);
    let specs = Mutex::new(work.together.iter().cloned().collect());
    let mut shared = Shared { paths, cluster, driver: &work.driver, deadline, specs, record };
    try_join_all((0..work.processes).map(|_| shared.one_by_one())).await?;
    shared.specs = Mutex::new(work.alone.iter().cloned().collect());
    shared.one_by_one().await
}

impl Shared<'_> {
    async fn one_by_one(&self) -> Result<(), Error> {
        while Instant::now() < self.deadline {
            let Some(spec) = self.specs.lock().await.pop_front() else { break };
            self.run(&spec).await?;
            // A control plane that is gone explains whatever else went wrong.
            self.cluster.check().await?;
        }
        Ok(())
    }

    async fn run(&self, name: &str) -> Result<(), Error> {
        let log = log(self.paths, name);
        let report = log.with_extension("json");
        // Those of a run that was cut off.
        [&log, &report].into_iter().try_for_each(|file| paths::remove(file))?;
        let mut command = ginkgo::command(self.paths, &ginkgo::focus_on(name), &report);
        let mut process = Daemon::start(&mut command, log)?;
        let in_time = timeout_at(self.deadline, process.ended()).await.is_ok();
        if !in_time {
            // It gives the spec up, and writes its report.
            process.end(Signal::SIGINT).await?;
        }
        if report.is_file() {
            self.settle(name, &report).await?;
            // It lists thousands of specs that were not chosen.
            paths::remove(&report)?;
        }
        let record = self.record.lock().await;
        if in_time { self.tell(&record, name) } else { Ok(()) }
    }

    /// Writes down how a spec ended. One whose process could not begin, for want of a cluster say, is not in the report.
    async fn settle(&self, name: &str, report: &Path) -> Result<(), Error> {
        let specs = ginkgo::read(report)?;
        match specs.iter().find(|spec| spec.name == name) {
            Some(spec) => self.record.lock().await.settle(spec, self.driver).map(drop),
            None => Ok(()),
        }
    }

    /// Tells how a spec ended, and removes the log of one that nobody will ask about.
    fn tell(&self, record: &Record, name: &str) -> Result<(), Error> {
        let Some(entry) = record.entries.get(name) else { return Ok(()) };
        let (all, log) = (record.entries.len(), log(self.paths, name));
        let place = format!("{}/{all}", all - record.count(Outcome::Waiting));
        let (seconds, short) = (entry.seconds, name.trim_start_matches(ginkgo::OURS));
        match entry.outcome {
            Outcome::Passed => say(&format!("{place} passed after {seconds} s: {short}")),
            Outcome::Skipped => say(&format!("{place} skipped: {short}")),
            Outcome::Waiting => say(&format!("{place} came to no end: {short} ({})", log.display())),
            Outcome::Failed => {
                let why = entry.note.lines().next().unwrap_or_default();
                say(&format!("{place} FAILED after {seconds} s: {short}: {why} ({})", log.display()));
            }
        }
        match entry.outcome {
            Outcome::Passed | Outcome::Skipped => paths::remove(&log),
            Outcome::Waiting | Outcome::Failed => Ok(()),
        }
    }
}
