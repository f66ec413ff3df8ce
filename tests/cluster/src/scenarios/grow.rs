//! Volumes grow while their pods run, mounted or raw; what the group has no room for can be taken back.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;

use super::volumes::{
    GIB, LIMIT, MIB, Mode, bytes_of, clear, containers, ensure, node_of, pair, resize, resized, volumes_on,
};
use crate::report::Remark;
use crate::{Cluster, Error, Space, wait};

const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;
const LARGEST: u64 = 320 * MIB;
/// More than any group of the lab has.
const TOO_LARGE: u64 = 1024 * GIB;

/// It writes down that it lives, ten times a second.
const WRITE: &str =
    "while :; do date +%s >> /data/log; sync; usleep 100000; done >/dev/null 2>&1 & echo begun";

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("grow").await?;
    space.apply(&pair("mounted", SIZE, Mode::Filesystem, "")).await?;
    space.apply(&pair("raw", SIZE, Mode::Block, "")).await?;
    let pods = [space.pod_ready("mounted", LIMIT).await?, space.pod_ready("raw", LIMIT).await?];
    space.exec_ok("mounted", &["sh", "-c", WRITE]).await?;
    space
        .exec_ok("raw", &["sh", "-c", "echo kept | dd of=/dev/volume conv=notrunc,fsync 2>/dev/null"])
        .await?;

    for name in ["mounted", "raw"] {
        resize(&space, name, LARGER).await?;
    }
    for name in ["mounted", "raw"] {
        resized(&space, name, LARGER).await?;
    }
    shows(&space, LARGER).await?;
    refused_and_lowered(&space).await?;
    shows(&space, LARGEST).await?;
    for pod in &pods {
        runs_on(cluster, &space, pod).await?;
    }
    clear(cluster, &space).await?;
    Ok(Remark::from("a file system and a raw device, each twice, under running pods".to_owned()))
}

/// The pods see volumes of this size, with what was in them.
async fn shows(space: &Space, size: u64) -> Result<(), Error> {
    let text = space.exec_ok("mounted", &["sh", "-c", "df -k /data | tail -n 1"]).await?;
    let blocks = text.split_whitespace().nth(1).and_then(|blocks| blocks.parse::<u64>().ok());
    // A small file system keeps a good part for itself.
    let is_grown = blocks.is_some_and(|blocks| blocks * 1024 > size / 10 * 8 && blocks * 1024 <= size);
    ensure(is_grown, || format!("the file system on {size} bytes shows {text:?}"))?;
    let text = space.exec_ok("raw", &["blockdev", "--getsize64", "/dev/volume"]).await?;
    ensure(text.trim() == size.to_string(), || format!("the device shows {text:?} bytes, not {size}"))?;
    let text = space.exec_ok("raw", &["head", "-c", "4", "/dev/volume"]).await?;
    ensure(text == "kept", || format!("the device begins with {text:?}"))?;
    // Nothing but zeroes where the volume has grown.
    let rest = "tail -c +6 /dev/volume | tr -d '\\0' | head -c 1 | wc -c";
    let text = space.exec_ok("raw", &["sh", "-c", rest]).await?;
    ensure(text.trim() == "0", || "the grown device shows bytes that its pod did not write".to_owned())
}

/// What the group has no room for is told so, and a smaller request works again.
async fn refused_and_lowered(space: &Space) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    for name in ["mounted", "raw"] {
        resize(space, name, TOO_LARGE).await?;
        let what = format!("the growth of {name} to be infeasible");
        let claim = wait::until(&claims, name, &what, LIMIT, is_infeasible).await?;
        let capacity = claim.and_then(|claim| bytes_of(claim.status?.capacity?.get("storage")?));
        ensure(capacity == Some(LARGER), || format!("{name} has {capacity:?} bytes after a refusal"))?;
    }
    for name in ["mounted", "raw"] {
        resize(space, name, LARGEST).await?;
        resized(space, name, LARGEST).await?;
    }
    Ok(())
}

/// Whether a claim is told that it cannot have the size that it asks for.
pub(super) fn is_infeasible(claim: Option<&PersistentVolumeClaim>) -> bool {
    let statuses = claim.and_then(|claim| claim.status.as_ref()?.allocated_resource_statuses.as_ref());
    statuses.is_some_and(|all| all.get("storage").is_some_and(|status| status.ends_with("ResizeInfeasible")))
}

/// The very same container runs, and its volume is as large as it says.
async fn runs_on(cluster: &Cluster, space: &Space, old: &Pod) -> Result<(), Error> {
    let name = old.metadata.name.clone().unwrap_or_default();
    let api: Api<Pod> = space.api();
    let new = api.get(&name).await.map_err(Error::api(format!("read the pod {name}")))?;
    ensure(containers(old) == containers(&new), || format!("{name} was started again"))?;
    let sizes = volumes_on(node_of(cluster, old)?).await?;
    ensure(sizes.values().any(|size| *size == LARGEST), || format!("no LV of {LARGEST} bytes: {sizes:?}"))
}
