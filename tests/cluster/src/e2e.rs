//! Kubernetes' own tests of storage drivers, run against Quarry in a cluster of their own.
//!
//! Which specs are for a driver like this, the suite itself says, from `e2e/testdriver.yaml`. Some are left out, and some
//! end at once since they are for other drivers or clusters: `skips` says which, and why. The others run side by side,
//! and those that must not have company one by one at the end (`turn`). What came of each is written down (`record`),
//! and the next run goes on from there.

mod ginkgo;
mod record;
mod skips;
mod table;
mod turn;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::digest::sha256;
use crate::keeper::{self, Purpose};
use crate::options::Options;
use crate::program::succeed;
use crate::{Cluster, Error, Paths, paths, say, scenarios};
use ginkgo::{Spec, State};
use record::{Outcome, Record};

/// How long the suite may take to say which specs there are, on a slow machine.
const LIST_LIMIT: Duration = Duration::from_secs(600);

/// Which specs to run, and how.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Only specs whose names fit this regular expression, in Go's syntax.
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,
    /// What has run already and is to run again.
    #[arg(long, value_enum, value_name = "WHICH")]
    again: Option<Again>,
    /// How many processes work side by side.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    procs: u8,
    /// For how many minutes at most, from the start of the cluster to its end.
    #[arg(long, value_name = "MINUTES", default_value_t = 90, value_parser = clap::value_parser!(u16).range(5..))]
    limit: u16,
}

/// Specs that have run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Again {
    /// Those that have failed.
    Failed,
    /// All.
    All,
}

impl Again {
    fn outcomes(self) -> &'static [Outcome] {
        match self {
            Again::Failed => &[Outcome::Failed],
            Again::All => &[Outcome::Failed, Outcome::Passed, Outcome::Skipped],
        }
    }
}

/// What the keeper is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Specs that may run side by side.
    together: Vec<String>,
    /// Specs that may not.
    alone: Vec<String>,
    processes: u8,
    /// When the cluster is to be down, in seconds since 1970.
    end: u64,
    /// The digest of the driver's image.
    driver: String,
}

/// Runs what is left to run. Fails without an error when a chosen spec has failed, or was not run for lack of time, or
/// something of a volume is left.
///
/// # Errors
///
/// When the suite cannot be built or asked, or no cluster comes up.
pub(crate) async fn run(paths: &Paths, options: Options, choice: &Choice) -> Result<ExitCode, Error> {
    let driver = digest(&options)?;
    keeper::build_suite(paths).await?;
    keeper::build(paths).await?;
    let specs = list(paths, choice.focus.as_deref()).await?;
    skips::check(&specs)?;
    // In a dry run those that were chosen pass.
    let chosen: Vec<_> = specs.iter().filter(|spec| spec.state == State::Passed).collect();
    let record = prepare(paths, &specs, &chosen, choice.again)?;
    let work = work(&record, &chosen, choice, driver.clone());
    let result = match work.together.len() + work.alone.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => {
            say(&format!("{count} specs to run"));
            keeper::run(paths, options, Purpose::Suite(work)).await
        }
    };
    let record = Record::load(paths)?;
    tell(paths, &record, &driver)?;
    let good = chosen.iter().all(|spec| {
        let entry = record.entries.get(&spec.name);
        entry.is_some_and(|entry| matches!(entry.outcome, Outcome::Passed | Outcome::Skipped))
    });
    result.map(|code| if good { code } else { ExitCode::FAILURE })
}

/// The first letters of the digest of the driver's image.
fn digest(options: &Options) -> Result<String, Error> {
    let image = options
        .driver
        .as_ref()
        .ok_or_else(|| Error::other("give --driver ARCHIVE for the driver's image"))?;
    let image = std::fs::read(image).map_err(Error::at("read", image))?;
    Ok(sha256(&image).chars().take(12).collect())
}

/// All specs for the driver, as a dry run shows them; it needs no cluster.
async fn list(paths: &Paths, focus: Option<&str>) -> Result<Vec<Spec>, Error> {
    paths::make_folder(&paths.e2e_logs())?;
    let report = paths.e2e().join("list.json");
    let focus = format!("{}.*({})", ginkgo::OURS, focus.unwrap_or_default());
    let mut command = ginkgo::command(paths, &focus, &report);
    succeed(command.arg("-ginkgo.dry-run"), LIST_LIMIT).await?;
    let specs = ginkgo::read(&report)?;
    paths::remove(&report)?;
    Ok(specs)
}

/// The record, with what is to run again waiting.
fn prepare(paths: &Paths, specs: &[Spec], chosen: &[&Spec], again: Option<Again>) -> Result<Record, Error> {
    let mut record = Record::load(paths)?;
    record.adopt(specs);
    if let Some(again) = again {
        chosen.iter().for_each(|spec| record.forget(&spec.name, again.outcomes()));
    }
    record.save()?;
    Ok(record)
}

/// What waits among the chosen.
fn work(record: &Record, chosen: &[&Spec], choice: &Choice, driver: String) -> Work {
    let waits =
        |spec: &&&Spec| record.entries.get(&spec.name).is_some_and(|entry| entry.outcome == Outcome::Waiting);
    let (alone, together): (Vec<_>, Vec<_>) = chosen.iter().filter(waits).partition(|spec| spec.alone());
    let names = |specs: Vec<&&Spec>| specs.into_iter().map(|spec| spec.name.clone()).collect();
    Work {
        together: names(together),
        alone: names(alone),
        processes: choice.procs,
        end: now() + u64::from(choice.limit) * 60,
        driver,
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Prints the results, and keeps the table for the page.
fn tell(paths: &Paths, record: &Record, driver: &str) -> Result<(), Error> {
    paths::write(&table_file(paths), table::by_part(record) + "\n")?;
    writeln!(io::stdout(), "{}", table::text(paths, record, driver)).map_err(Error::io("print the results"))
}

fn table_file(paths: &Paths) -> PathBuf {
    paths.e2e().join("results.md")
}

/// The keeper's part of it, in the cluster. Returns whether there was time for all of it, and nothing of a volume is left.
///
/// # Errors
///
/// When something else than a spec has failed.
pub(crate) async fn inside(paths: &Paths, cluster: &Cluster, work: &Work) -> Result<bool, Error> {
    let left = Duration::from_secs(work.end.saturating_sub(now())).saturating_sub(turn::RESERVE);
    let deadline = Instant::now() + left;
    turn::all(paths, cluster, work, deadline).await?;
    paths::write(&paths.e2e_logs().join("driver.log"), cluster.driver_words(None).await?)?;
    match cluster.outages() {
        0 => {}
        count => say(&format!("{count} outage(s) of guests meanwhile")),
    }
    if Instant::now() > deadline {
        say("the time is up: the next run goes on from here");
        return Ok(false);
    }
    let end = scenarios::nothing_left(cluster).await;
    if let Err(error) = &end {
        say(&format!("something is left after all specs: {}", error.chain()));
    }
    Ok(end.is_ok())
}
