//! How long it takes. Nothing is judged here: a scenario has passed when it has measured.
//!
//! A guest is slower than a machine, and other work on this one shows: only times taken side by side can be compared.

use std::time::{Duration, Instant};

use super::volumes::{LIMIT, MIB, Mode, bare_pod, clear, ensure, pair, resize, resized};
use crate::report::Remark;
use crate::{Cluster, Error, Space};

const ROUNDS: u64 = 10;
const SIZE: u64 = 128 * MIB;
/// By how much a volume grows each time.
const STEP: u64 = 64 * MIB;
/// What the file system counts in.
const BLOCK: u64 = 4096;

/// From claim and pod applied to pod Ready, less what a pod with an emptyDir takes.
pub(super) async fn pod_over_empty_dir(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("time-pod").await?;
    let (mut empty, mut with_volume) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        empty.push(time_pod(&space, &bare_pod("empty"), "empty").await?);
        let name = format!("volume-{round}");
        with_volume.push(time_pod(&space, &pair(&name, SIZE, Mode::Filesystem, ""), &name).await?);
    }
    clear(cluster, &space).await?;
    let [empty, with_volume] = [empty, with_volume].map(median);
    let note =
        format!("medians of {ROUNDS}: {with_volume:.2} s with a volume, {empty:.2} s with an emptyDir");
    Ok(Remark::measured(with_volume - empty, note))
}

/// Applies a manifest and waits for its pod, which is gone again when this returns; its claim, if any, too.
async fn time_pod(space: &Space, manifest: &str, pod: &str) -> Result<Duration, Error> {
    let start = Instant::now();
    space.apply(manifest).await?;
    space.pod_ready(pod, LIMIT).await?;
    let time = start.elapsed();
    space.delete(manifest).await?;
    space.pod_gone(pod, LIMIT).await?;
    Ok(time)
}

/// From a patch of the claim to its grown status, behind which the file system has grown.
pub(super) async fn expand(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("time-expand").await?;
    space.apply(&pair("growing", SIZE, Mode::Filesystem, "")).await?;
    space.pod_ready("growing", LIMIT).await?;
    let before = blocks(&space).await?;
    let mut times = Vec::new();
    for round in 1..=ROUNDS {
        let size = SIZE + round * STEP;
        let start = Instant::now();
        resize(&space, "growing", size).await?;
        resized(&space, "growing", size).await?;
        times.push(start.elapsed());
    }
    // Looked at once, since each look starts a process in the pod, which the next round would have to wait for.
    let (after, asked) = (blocks(&space).await?, ROUNDS * STEP / BLOCK);
    let grown = after.saturating_sub(before);
    ensure(grown > asked / 10 * 9, || {
        format!("the file system grew by {grown} blocks where {asked} were asked for")
    })?;
    clear(cluster, &space).await?;
    let slowest = times.iter().max().copied().unwrap_or_default();
    let note = format!("median of {ROUNDS}; the slowest {:.2} s", slowest.as_secs_f64());
    Ok(Remark::measured(median(times), note))
}

/// The size of the pod's file system.
async fn blocks(space: &Space) -> Result<u64, Error> {
    let text = space.exec_ok("growing", &["stat", "-f", "-c", "%b", "/data"]).await?;
    text.trim().parse().map_err(|_| Error::other(format!("{text:?} is no number of blocks")))
}

/// In seconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let half = times.len() / 2;
    match (times.get(half), times.len() % 2) {
        (None, _) => 0.0,
        (Some(middle), 1) => middle.as_secs_f64(),
        (Some(upper), _) => (times[half - 1] + *upper).as_secs_f64() / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        let of = |times: &[u64]| median(times.iter().map(|time| Duration::from_secs(*time)).collect());
        assert!((of(&[9, 1, 2]) - 2.0).abs() < 1e-9);
        assert!((of(&[4, 9, 1, 2]) - 3.0).abs() < 1e-9);
        assert!(of(&[]).abs() < 1e-9);
    }
}
