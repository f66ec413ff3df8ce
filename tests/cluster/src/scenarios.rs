//! Scenarios: what a cluster is brought up for. Each is a file with a function, and a line in the table.

mod by_hand;
mod capacity;
mod chaos;
mod drain;
mod empty_dir;
mod grow;
mod grow_any_time;
mod lost_objects;
mod many_claims;
mod moved_disks;
mod node_faults;
mod reclaim;
mod refusals;
mod replicas;
mod requests;
mod restarts;
mod scraped;
mod stateful_set;
mod times;
mod volume_groups;
mod volumes;
mod wait_for_first_consumer;
mod ways_of_use;

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::report::{Outcome, Remark};
use crate::{Cluster, Error, Paths, paths, say};

pub(crate) use volumes::nothing_left;

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// A scenario under way. What it returns is a remark for the table of results; it may be empty.
type Run<'a> = Pin<Box<dyn Future<Output = Result<Remark, Error>> + Send + 'a>>;

/// A scenario.
pub(crate) struct Scenario {
    /// Its name in the table of results.
    pub(crate) name: &'static str,
    /// Whether it is about the driver, which has to be installed then.
    pub(crate) driver: bool,
    /// Whether it has still to be seen to pass: it runs only when it is named.
    on_trial: bool,
    run: for<'a> fn(&'a Cluster) -> Run<'a>,
}

/// All scenarios, in the order in which they run.
pub(crate) const ALL: &[Scenario] = &[
    of_cluster("empty_dir", |cluster| Box::pin(empty_dir::run(cluster))),
    of_cluster("node_faults", |cluster| Box::pin(node_faults::run(cluster))),
    of_driver("wait_for_first_consumer", |cluster| Box::pin(wait_for_first_consumer::run(cluster))),
    of_driver("stateful_set", |cluster| Box::pin(stateful_set::run(cluster))),
    of_driver("grow", |cluster| Box::pin(grow::run(cluster))),
    of_driver("capacity", |cluster| Box::pin(capacity::run(cluster))),
    of_driver("restarts", |cluster| Box::pin(restarts::run(cluster))),
    of_driver("replicas", |cluster| Box::pin(replicas::run(cluster))),
    of_driver("volume_groups", |cluster| Box::pin(volume_groups::run(cluster))),
    of_driver("refusals", |cluster| Box::pin(refusals::run(cluster))),
    of_driver("scraped", |cluster| Box::pin(scraped::run(cluster))),
    of_driver("grow_any_time", |cluster| Box::pin(grow_any_time::run(cluster))),
    of_driver("ways_of_use", |cluster| Box::pin(ways_of_use::run(cluster))),
    of_driver("reclaim", |cluster| Box::pin(reclaim::run(cluster))),
    of_driver("drain", |cluster| Box::pin(drain::run(cluster))),
    of_driver("moved_disks", |cluster| Box::pin(moved_disks::run(cluster))),
    on_trial("many_claims", |cluster| Box::pin(many_claims::run(cluster))),
    of_driver("time_pod_over_emptydir", |cluster| Box::pin(times::pod_over_empty_dir(cluster))),
    of_driver("time_expand", |cluster| Box::pin(times::expand(cluster))),
    of_driver("chaos", |cluster| Box::pin(chaos::run(cluster))),
    // The last one: what comes after it is in a cluster that has lost everything.
    of_driver("lost_objects", |cluster| Box::pin(lost_objects::run(cluster))),
];

const fn of_cluster(name: &'static str, run: for<'a> fn(&'a Cluster) -> Run<'a>) -> Scenario {
    Scenario { name, driver: false, on_trial: false, run }
}

const fn of_driver(name: &'static str, run: for<'a> fn(&'a Cluster) -> Run<'a>) -> Scenario {
    Scenario { name, driver: true, on_trial: false, run }
}

const fn on_trial(name: &'static str, run: for<'a> fn(&'a Cluster) -> Run<'a>) -> Scenario {
    Scenario { on_trial: true, ..of_driver(name, run) }
}

/// Those of these names; if none is given all but those on trial.
pub(crate) fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, Error> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|scenario| scenario.name != **name)) {
        let known: Vec<_> = ALL.iter().map(|scenario| scenario.name).collect();
        return Err(Error::other(format!("there is no scenario {unknown}, but: {}", known.join(", "))));
    }
    Ok(ALL
        .iter()
        .filter(|scenario| match names {
            [] => !scenario.on_trial,
            names => names.iter().any(|name| name == scenario.name),
        })
        .collect())
}

/// The names of those of these that need the driver.
pub(crate) fn of_the_driver(names: &[String]) -> Result<Vec<&'static str>, Error> {
    Ok(choose(names)?.into_iter().filter(|one| one.driver).map(|one| one.name).collect())
}

impl Scenario {
    /// Runs it to its end, whatever that is.
    pub(crate) async fn run(&self, cluster: &Cluster) -> Outcome {
        say(&format!("scenario {}", self.name));
        let (start, outages) = (Instant::now(), cluster.outages());
        let late =
            |_| Error::Late { what: "the scenario to end".into(), limit: LIMIT, seen: "it runs".into() };
        let result = timeout(LIMIT, (self.run)(cluster)).await.map_err(late).flatten();
        // A control plane that is gone explains whatever else went wrong.
        let result = cluster.check().await.and(result);
        let mut outcome = Outcome::new(self.name, start.elapsed(), result);
        match cluster.outages() - outages {
            0 => {}
            count => outcome.remark(&format!("{count} outage(s) of guests meanwhile")),
        }
        outcome.tell();
        if self.driver && !outcome.passed() {
            self.keep_words(cluster).await;
        }
        outcome
    }

    /// The driver's logs end with the cluster; of a scenario that failed they are kept.
    async fn keep_words(&self, cluster: &Cluster) {
        let keep = async {
            let words = cluster.driver_words(None).await?;
            let file = Paths::find()?.logs().join(format!("{}-driver.log", self.name));
            paths::write(&file, words)?;
            say(&format!("the driver's logs: {}", file.display()));
            Ok::<_, Error>(())
        };
        if let Err(error) = keep.await {
            say(&error.chain());
        }
    }
}
