//! Parts of the cluster are killed and started again at random while thirty pods with claims come, grow and go. In the
//! end all that was answered is true: no volume is lost, no pod is stuck, nothing is left over.
//!
//! A seed draws the faults, the volumes and the pauses, and is told; what comes first remains the machine's choice.

mod faults;
mod leftovers;
mod marks;
mod patience;
mod slot;
mod truth;
mod volume;
mod wishes;

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::watch;
use tokio::time::timeout;

use self::faults::Storm;
use self::slot::{Done, Ended, Slot};
use self::volume::Volume;
use super::volumes::{clear, ensure};
use crate::report::Remark;
use crate::{Cluster, Error, Space, say};

/// How many pods with claims there are at the same time.
const SLOTS: u64 = 30;

/// How long anything may take that is waited for: a node that is started has a dozen pods to start, and each part lets up
/// to two minutes pass before it tries again.
const PATIENCE: Duration = Duration::from_secs(400);

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let (seed, length) = (wishes::seed()?, wishes::length()?);
    let told = format!("{}={seed}", wishes::SEED);
    say(&format!("chaos: {told}, for {} s", length.as_secs()));
    let named = |error: Error| Error::Other(format!("{told}: {}", error.chain()));
    chaos(cluster, seed, length).await.map(|note| Remark::from(format!("{told}: {note}"))).map_err(named)
}

async fn chaos(cluster: &Cluster, seed: u64, length: Duration) -> Result<String, Error> {
    // What the nodes were given when they were made is not what may be lost here.
    for node in cluster.nodes() {
        node.run_ok(&["sync"]).await?;
    }
    let space = cluster.space("chaos").await?;
    let (storm, volumes, done) = shaken(cluster, &space, seed, length).await?;
    truth::holds(cluster, &space, &volumes).await.map_err(|error| storm.explain(&error))?;
    let all_gone = async {
        try_join_all(volumes.iter().map(Volume::end)).await?;
        clear(cluster, &space).await?;
        leftovers::none(cluster).await
    };
    all_gone.await.map_err(|error| storm.explain(&error))?;
    let Done { runs, grown, gone } = done;
    ensure(grown > 0 && gone > 0, || {
        format!("{runs} pods ran, {grown} volumes grew and {gone} went: that shows too little")
    })?;
    Ok(format!("{runs} pods ran, {grown} volumes grew, {gone} came anew; {}", storm.summary()))
}

/// Lets faults strike under the users of all slots. Returns what struck, the volumes that are there in the end, and
/// what was done.
async fn shaken<'a>(
    cluster: &'a Cluster,
    space: &Space,
    seed: u64,
    length: Duration,
) -> Result<(Storm<'a>, Vec<Volume>, Done), Error> {
    let begun = Instant::now();
    let (stop, stopped) = watch::channel(false);
    let slots = (1..=SLOTS).map(|number| Slot::new(space, number, seed, begun, stopped.clone()).run());
    let users = async {
        let ended = try_join_all(slots).await;
        // If one has found something wrong, no more faults; the one that is under way comes to its end.
        stop.send_replace(true);
        Ok::<_, Error>(ended)
    };
    let storm = Storm::new(cluster, seed, begun).rage(length, &stop);
    let (ended, storm) = tokio::try_join!(users, storm)?;
    let ended = ended.map_err(|error| storm.explain(&error))?;
    let done = ended.iter().map(|one| one.done).sum();
    Ok((storm, ended.into_iter().map(|Ended { volume, .. }| volume).collect(), done))
}

/// Waits for so long, or until it is time to stop. Returns whether it is.
async fn is_stopped_within(stop: &mut watch::Receiver<bool>, time: Duration) -> bool {
    timeout(time, stop.wait_for(|stop| *stop)).await.is_ok()
}
