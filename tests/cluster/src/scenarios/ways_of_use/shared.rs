//! Several pods of one node share a volume; some may only read, and pods of other nodes have to wait.

use super::SIZE;
use crate::scenarios::requests::{delete_claim, reads, waits_because, writes};
use crate::scenarios::volumes::{LIMIT, Mode, claim, delete_pod, ensure, node_of, on, pod};
use crate::{Cluster, Error, Space};

const FILES: &str = "shared";
const DEVICE: &str = "shared-raw";

pub(super) async fn a_file_system(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.apply(&claim(FILES, SIZE, Mode::Filesystem)).await?;
    space.apply(&pod("first", FILES, Mode::Filesystem, "")).await?;
    let first = space.pod_ready("first", LIMIT).await?;
    writes(space, "first").await?;
    space.apply(&pod("second", FILES, Mode::Filesystem, "")).await?;
    space.apply(&reader("by-volume", "claimName: shared}", "claimName: shared, readOnly: true}")?).await?;
    space.apply(&reader("by-mount", "mountPath: /data}", "mountPath: /data, readOnly: true}")?).await?;
    for name in ["second", "by-volume", "by-mount"] {
        space.pod_ready(name, LIMIT).await?;
        reads(space, name).await?;
    }
    only_reads(space, "by-volume").await?;
    only_reads(space, "by-mount").await?;
    waits_elsewhere(cluster, space, node_of(cluster, &first)?.name()).await?;

    // It goes, and the others stay what they were.
    delete_pod(&space.api(), "first").await?;
    space.exec_ok("second", &["sh", "-c", "echo more > /data/more; sync"]).await?;
    for name in ["by-volume", "by-mount"] {
        let text = space.exec_ok(name, &["cat", "/data/more"]).await?;
        ensure(text == "more\n", || format!("{name} finds {text:?} where another pod has written \"more\""))?;
        only_reads(space, name).await?;
    }
    for name in ["second", "by-volume", "by-mount"] {
        delete_pod(&space.api(), name).await?;
    }
    delete_claim(space, FILES).await
}

/// A pod that may only read, by one word more in its manifest.
fn reader(name: &str, words: &str, with: &str) -> Result<String, Error> {
    let all = pod(name, FILES, Mode::Filesystem, "");
    let changed = all.replace(words, with);
    ensure(all != changed, || format!("a pod's manifest has no {words:?}: {all}"))?;
    Ok(changed)
}

async fn only_reads(space: &Space, pod: &str) -> Result<(), Error> {
    let tried = space.exec(pod, &["touch", "/data/by-a-reader"]).await?;
    ensure(tried.status != 0 && tried.stderr.contains("Read-only file system"), || {
        format!("{pod}, which may only read, wrote a file, or was refused in other words: {tried:?}")
    })
}

/// A pod on another node has to wait.
async fn waits_elsewhere(cluster: &Cluster, space: &Space, here: &str) -> Result<(), Error> {
    let Some(other) = cluster.nodes().iter().find(|node| node.name() != here) else {
        return Err(Error::other("this needs two nodes"));
    };
    space.apply(&pod("elsewhere", FILES, Mode::Filesystem, &on(other.name()))).await?;
    waits_because(space, "elsewhere", "didn't match PersistentVolume's node affinity").await?;
    delete_pod(&space.api(), "elsewhere").await
}

pub(super) async fn a_raw_device(space: &Space) -> Result<(), Error> {
    const WRITE: &str = "echo kept | dd of=/dev/volume conv=notrunc,fsync 2>/dev/null";
    const OTHERS: &str = "echo ours | dd of=/dev/volume bs=4096 seek=1 conv=notrunc,fsync 2>/dev/null";
    space.apply(&claim(DEVICE, SIZE, Mode::Block)).await?;
    space.apply(&pod("raw", DEVICE, Mode::Block, "")).await?;
    space.pod_ready("raw", LIMIT).await?;
    space.apply(&pod("raw-too", DEVICE, Mode::Block, "")).await?;
    space.pod_ready("raw-too", LIMIT).await?;
    let size = space.exec_ok("raw-too", &["blockdev", "--getsize64", "/dev/volume"]).await?;
    ensure(size.trim() == SIZE.to_string(), || format!("the device has {size:?} bytes, not {SIZE}"))?;
    space.exec_ok("raw", &["sh", "-c", WRITE]).await?;
    begins_with(space, "raw-too", 0, "kept").await?;
    delete_pod(&space.api(), "raw").await?;
    space.exec_ok("raw-too", &["sh", "-c", OTHERS]).await?;
    delete_pod(&space.api(), "raw-too").await?;

    space.apply(&pod("raw-later", DEVICE, Mode::Block, "")).await?;
    space.pod_ready("raw-later", LIMIT).await?;
    begins_with(space, "raw-later", 0, "kept").await?;
    begins_with(space, "raw-later", 1, "ours").await?;
    delete_pod(&space.api(), "raw-later").await?;
    delete_claim(space, DEVICE).await
}

/// A block of the device, of 4 KiB, begins so.
async fn begins_with(space: &Space, pod: &str, block: u32, words: &str) -> Result<(), Error> {
    let read =
        format!("dd if=/dev/volume bs=4096 skip={block} count=1 2>/dev/null | head -c {}", words.len());
    let text = space.exec_ok(pod, &["sh", "-c", &read]).await?;
    ensure(text == words, || {
        format!("block {block} of the device of {pod} begins with {text:?}, not {words:?}")
    })
}
