//! A hundred pods with claims, eight starting at a time: how fast they are, beside others without, what they cost the
//! API server, and what the driver does while nothing happens to them.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, ResourceExt};

use super::scraped::{NODE_PORT, metrics};
use super::volumes::{MIB, Mode, bare_pod, clear, ensure, gone, is_resized, pair, resize};
use crate::audit::{Audit, Mark, Requests};
use crate::report::Remark;
use crate::{Cluster, Error, Paths, Space, say, wait};

const COUNT: usize = 100;

/// How many pods without claims: a guest takes seconds for each, and these tell the rate.
const BARE: usize = 40;

const SIZE: u64 = 32 * MIB;
const LARGER: u64 = 64 * MIB;

/// How many pods start at the same time.
const AT_ONCE: usize = 8;

/// A hundred of anything, on guests.
const LIMIT: Duration = Duration::from_secs(900);

/// How long is looked at what the driver does at rest.
const REST: Duration = Duration::from_secs(120);

/// What the controller asks beside its sidecars, in all, while a hundred claims come, grow or go: far less than one for
/// each.
const FEW: usize = COUNT / 5;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let audit = Audit::of(&Paths::find()?);
    let bare = cluster.space("many-pods").await?;
    let without =
        all_run(&bare, (0..BARE).map(name).map(|name| (name.clone(), bare_pod(&name))).collect()).await?;
    bare.remove().await?;

    let space = cluster.space("many-claims").await?;
    let mark = audit.mark()?;
    let pairs =
        (0..COUNT).map(name).map(|name| (name.clone(), pair(&name, SIZE, Mode::Filesystem, ""))).collect();
    let with = all_run(&space, pairs).await?;
    let created = cost(&audit, mark, "created")?;
    let (at_rest, mounted) = commands_at_rest(cluster, &space).await?;

    let mark = audit.mark()?;
    let start = Instant::now();
    all_grow(&space).await?;
    let grown = start.elapsed();
    let expanded = cost(&audit, mark, "expanded")?;

    let mark = audit.mark()?;
    space.remove().await?;
    gone(cluster).await?;
    let deleted = cost(&audit, mark, "deleted")?;
    clear(cluster, &space).await?;
    let rate = |count: usize, time: Duration| count as f64 / time.as_secs_f64();
    Ok(Remark::from(format!(
        "{:.2} claims a second to Running ({:.2} pods with emptyDir), {:.2} expansions; requests of our pods per \
         claim: {created:.2} to create, {expanded:.2} to expand, {deleted:.2} to delete; at rest, with {mounted} \
         mounted, {at_rest:.1} lvm commands a minute and node",
        rate(COUNT, with),
        rate(BARE, without),
        rate(COUNT, grown),
    )))
}

fn name(number: usize) -> String {
    format!("one-{number}")
}

/// From the moment that the first is asked for to that when the last is ready. The next is asked for as soon as one
/// is: a guest's container runtime gives up on sandboxes when dozens are made at once.
async fn all_run(space: &Space, pods: Vec<(String, String)>) -> Result<Duration, Error> {
    let start = Instant::now();
    let one = async |(name, manifest): (String, String)| {
        space.apply(&manifest).await?;
        space.pod_ready(&name, LIMIT).await.map(drop)
    };
    stream::iter(pods).map(one).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(start.elapsed())
}

async fn all_grow(space: &Space) -> Result<(), Error> {
    try_join_all((0..COUNT).map(async |number| resize(space, &name(number), LARGER).await)).await?;
    let claims: Api<PersistentVolumeClaim> = space.api();
    let show = |all: &[PersistentVolumeClaim]| {
        let waiting = all.iter().filter(|claim| !is_resized(Some(claim), LARGER));
        waiting.map(ResourceExt::name_any).collect::<Vec<_>>().join(", ")
    };
    wait::until_all(&claims, "all claims to have grown", LIMIT, show, |all| {
        all.iter().all(|claim| is_resized(Some(claim), LARGER))
    })
    .await
    .map(drop)
}

/// How many requests a claim took. The driver's own are next to none.
fn cost(audit: &Audit, mark: Mark, what: &str) -> Result<f64, Error> {
    let requests = audit.since(mark)?;
    say(&format!("requests while {COUNT} claims were {what}: {requests:?}"));
    let own = sum(&requests, |program| program == "quarry");
    ensure(own <= FEW, || {
        format!(
            "while {COUNT} claims were {what}, the driver itself asked the API server {own} times: {requests:?}"
        )
    })?;
    Ok(sum(&requests, |_| true) as f64 / COUNT as f64)
}

fn sum(requests: &Requests, wanted: impl Fn(&str) -> bool) -> usize {
    requests.iter().filter(|(program, _)| wanted(program)).flat_map(|(_, all)| all.values()).sum()
}

/// LVM's commands on a node in a minute at rest, while the kubelet asks for the volumes' usage; and how many volumes are
/// mounted there.
async fn commands_at_rest(cluster: &Cluster, space: &Space) -> Result<(f64, usize), Error> {
    let before = commands(cluster, space).await?;
    // This is no wait for anything: the time is what is measured over.
    tokio::time::sleep(REST).await;
    let after = commands(cluster, space).await?;
    let nodes = cluster.nodes().len();
    let per_node = (after - before) as f64 / nodes as f64;
    Ok((per_node * 60.0 / REST.as_secs_f64(), COUNT / nodes))
}

/// How many commands the drivers have given LVM, on all nodes.
async fn commands(cluster: &Cluster, space: &Space) -> Result<u64, Error> {
    let mut count = 0;
    for pod in cluster.driver_pods("node").await? {
        let text = metrics(space, &name(0), &pod, NODE_PORT).await?;
        let counts =
            text.lines().filter(|line| line.starts_with("quarry_lvm_command_duration_seconds_count"));
        count += counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(count)
}
