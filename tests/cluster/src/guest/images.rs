//! Filling a disk with images, in a guest that does nothing else.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{config, disk, services};
use crate::program::{Daemon, command, succeed};
use crate::{Error, say};

const IMPORT_LIMIT: Duration = Duration::from_secs(900);

/// The namespace in which containerd keeps what belongs to Kubernetes.
pub(crate) const NAMESPACE: &str = "k8s.io";

/// Starts containerd on the guest's disk, gives it the images, and ends it in good order.
pub(crate) async fn fill_disk(bin: &Path, archive: &Path, log: &Path) -> Result<(), Error> {
    let (first, _) = super::disks()?;
    disk::attach(&first)?;
    config::write_containerd(bin)?;
    let containerd = Daemon::start(&mut services::node_command("containerd", bin), log.to_owned())?;
    services::wait_for_containerd().await?;
    say(&import(bin, archive).await?);
    // Not at once: what it has not written down would be missing on every node.
    containerd.end(Signal::SIGTERM).await
}

async fn import(bin: &Path, archive: &Path) -> Result<String, Error> {
    let mut ctr = command(bin.join("ctr"));
    ctr.args(["--namespace", NAMESPACE, "images", "import", "--local", "--discard-unpacked-layers"])
        .arg(archive);
    succeed(&mut ctr, IMPORT_LIMIT).await
}
