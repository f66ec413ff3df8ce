//! What a person reads in `kubectl describe` when a claim is refused: what was asked, what is there, what to do.

use super::requests::{Claim, class, told};
use super::volumes::{GIB, LIMIT, MIB, Mode, clear, delete_pair, pair, pod, resize};
use crate::report::Remark;
use crate::{Cluster, Error, Space};

/// A claim that is refused.
struct Refusal {
    name: &'static str,
    /// What its class has beside what every class has, in YAML.
    class: &'static str,
    size: u64,
    /// What the claim's events say.
    words: &'static str,
}

const REFUSALS: [Refusal; 7] = [
    Refusal {
        name: "parameter",
        class: "parameters: {volumegroup: fast}",
        size: 128 * MIB,
        words: "parameter \"volumegroup\" is not known; a StorageClass may have: volumeGroup, \
                csi.storage.k8s.io/fstype, mkfsOptions",
    },
    Refusal {
        name: "file-system",
        class: "parameters: {csi.storage.k8s.io/fstype: ext3}",
        size: 128 * MIB,
        words: "file system \"ext3\" is not one of: ext4, xfs, btrfs",
    },
    Refusal {
        name: "too-small",
        class: "parameters: {csi.storage.k8s.io/fstype: xfs}",
        size: 128 * MIB,
        words: "xfs needs a volume of at least 300 MiB, and 128 MiB is asked for: ask for 300 MiB, or for \
                another file system",
    },
    Refusal {
        name: "mkfs-option",
        class: "parameters: {mkfsOptions: rmapbt=1}",
        size: 128 * MIB,
        words: "mkfs option \"rmapbt=1\" is not one of: ",
    },
    Refusal {
        name: "mount-option",
        class: "mountOptions: [nobarrier]",
        size: 128 * MIB,
        words: "mount option \"nobarrier\" is not one of: ",
    },
    Refusal {
        name: "unknown-group",
        class: "parameters: {volumeGroup: fast}",
        size: 128 * MIB,
        words: "StorageClass unknown-group names volume group fast, and no node that is connected has one of that \
                name that Quarry is told to use: no volume can be made. There are: quarry",
    },
    // The scheduler's words, by what the driver publishes.
    Refusal {
        name: "too-large",
        class: "",
        size: 1024 * GIB,
        words: "node(s) did not have enough free storage",
    },
];

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("refusals").await?;
    for refusal in &REFUSALS {
        refused(&space, refusal).await?;
    }
    no_room_to_grow(&space).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(format!("{} reasons, each on its claim", REFUSALS.len() + 1)))
}

async fn refused(space: &Space, refusal: &Refusal) -> Result<(), Error> {
    let Refusal { name, class: extra, size, words } = refusal;
    let class = class(name, extra);
    space.apply(&class).await?;
    space.apply(&Claim::new(name, *size, Mode::Filesystem).class(name).manifest()).await?;
    space.apply(&pod(name, name, Mode::Filesystem, "")).await?;
    told(space, name, words).await?;
    delete_pair(space, name).await?;
    space.delete(&class).await
}

async fn no_room_to_grow(space: &Space) -> Result<(), Error> {
    space.apply(&pair("larger", 128 * MIB, Mode::Filesystem, "")).await?;
    space.pod_ready("larger", LIMIT).await?;
    resize(space, "larger", 1024 * GIB).await?;
    told(space, "larger", "has no room to grow the volume from 128 MiB to 1 TiB: ").await?;
    delete_pair(space, "larger").await
}
