//! What runs in the keeper.

use std::process::ExitCode;
use std::time::Duration;

use nix::unistd::{dup2_stderr, setsid};
use tokio::io::AsyncReadExt;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::state::{State, lock};
use super::{Purpose, Task};
use crate::paths::{self, Paths};
use crate::program::open_log;
use crate::{Cluster, Error, e2e, namespaces, report, say, scenarios};

/// How long threads may take that wait for the outside world.
const THREADS_LIMIT: Duration = Duration::from_secs(1);

/// The exit status that says that no scenario has been judged.
const BROKEN: u8 = 2;

/// Does what the task says. Returns 1 when a scenario failed and 2 when something else did.
pub(crate) fn main(task: &str) -> ExitCode {
    let result = prepare(task).and_then(|(paths, task, state)| {
        let runtime = Runtime::new().map_err(Error::io("start the runtime"))?;
        let result = runtime.block_on(keep(&paths, &task, state));
        // One of its threads may wait for the lifeline.
        runtime.shutdown_timeout(THREADS_LIMIT);
        result
    });
    result.unwrap_or_else(|error| {
        say(&error.chain());
        ExitCode::from(BROKEN)
    })
}

/// All that has to be done before there is a second thread.
fn prepare(task: &str) -> Result<(Paths, Task, State), Error> {
    let task = serde_json::from_str(task).map_err(Error::other)?;
    let paths = Paths::find()?;
    // A terminal's Ctrl-C reaches the front only, and this process tidies up after it.
    setsid().map_err(Error::io("make a session"))?;
    let state = State::own()?;
    namespaces::enter()?;
    Ok((paths, task, state))
}

async fn keep(paths: &Paths, task: &Task, state: State) -> Result<ExitCode, Error> {
    let Some(_lock) = lock(paths, "cluster")? else {
        return Err(Error::other("another cluster is just being started or taken down"));
    };
    paths::remove(&paths.logs())?;
    state.save(paths)?;
    let life = async {
        let cluster = Cluster::up(paths, &task.disk, &task.options).await?;
        match &task.purpose {
            Purpose::Stay => Ok::<_, Error>((cluster, ExitCode::SUCCESS)),
            Purpose::Run(names) => {
                let code = run_scenarios(paths, &cluster, names).await?;
                Ok((cluster, code))
            }
            Purpose::Suite(work) => {
                let good = e2e::inside(paths, &cluster, work).await?;
                Ok((cluster, if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
            }
        }
    };
    let (cluster, code) = tokio::select! {
        result = life => result?,
        () = front_is_gone() => return Err(Error::other("interrupted")),
        () = told_to_end() => return Err(Error::other("told to end")),
    };
    if task.purpose == Purpose::Stay {
        stay(paths, state).await?;
    }
    down(cluster).await;
    Ok(code)
}

/// Lets go of the front, and waits until somebody takes the cluster down.
async fn stay(paths: &Paths, mut state: State) -> Result<(), Error> {
    state.ready = true;
    state.save(paths)?;
    let log = paths.logs().join("keeper.log");
    dup2_stderr(open_log(&log)?).map_err(Error::at("log to", &log))?;
    told_to_end().await;
    Ok(())
}

async fn run_scenarios(paths: &Paths, cluster: &Cluster, names: &[String]) -> Result<ExitCode, Error> {
    let mut outcomes = Vec::new();
    for scenario in scenarios::choose(names)? {
        outcomes.push(scenario.run(cluster).await);
        // As far as it got, should the next one never end.
        report::save(&outcomes, &paths.results())?;
    }
    report::print(&outcomes)?;
    let passed = outcomes.iter().all(report::Outcome::passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The guests first: they are the only ones that have something to put away. The rest ends with this process.
async fn down(cluster: Cluster) {
    for node in cluster.nodes() {
        if let Err(error) = node.cut_power().await {
            say(&error.chain());
        }
    }
}

async fn front_is_gone() {
    // Nothing ever comes through; it closes.
    drop(tokio::io::stdin().read(&mut [0]).await);
}

async fn told_to_end() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}
