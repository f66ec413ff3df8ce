//! Ten claims are asked to grow in the same moment.

use std::time::Instant;

use futures_util::future::try_join_all;

use crate::scenarios::requests::{fills, pod_of, were_not_stopped};
use crate::scenarios::volumes::{LIMIT, MIB, Mode, claim, on, resize, resized};
use crate::{Cluster, Error, Space};

const PODS: [&str; 2] = ["five", "five-more"];
const EACH: usize = 5;
const SIZE: u64 = 64 * MIB;
const LARGER: u64 = 192 * MIB;

/// Returns how many seconds it took.
pub(super) async fn ten_grow(cluster: &Cluster, space: &Space) -> Result<f64, Error> {
    let mut pods = Vec::new();
    for (pod, node) in PODS.iter().zip(cluster.nodes().iter().cycle()) {
        let names = claims_of(pod);
        let claims: Vec<_> = names.iter().map(|name| claim(name, SIZE, Mode::Filesystem)).collect();
        space.apply(&claims.join("---\n")).await?;
        let used: Vec<_> = names.iter().map(|name| (name.as_str(), Mode::Filesystem)).collect();
        space.apply(&pod_of(pod, &used, &on(node.name()))).await?;
    }
    for pod in PODS {
        pods.push(space.pod_ready(pod, LIMIT).await?);
    }

    let names: Vec<_> = PODS.iter().flat_map(|pod| claims_of(pod)).collect();
    let start = Instant::now();
    try_join_all(names.iter().map(|name| resize(space, name, LARGER))).await?;
    try_join_all(names.iter().map(|name| resized(space, name, LARGER))).await?;
    let seconds = start.elapsed().as_secs_f64();
    for pod in PODS {
        fills(space, pod, "/volumes/*", LARGER).await?;
    }
    were_not_stopped(space, &pods).await?;
    Ok(seconds)
}

fn claims_of(pod: &str) -> Vec<String> {
    (0..EACH).map(|number| format!("{pod}-{number}")).collect()
}
