//! Filling a disk with images, in a guest that does nothing else.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::timeout;

use super::{config, disk, services};
use crate::program::{command, open_log, succeed};
use crate::{Error, say};

const IMPORT_LIMIT: Duration = Duration::from_secs(900);
const END_LIMIT: Duration = Duration::from_secs(60);

/// The namespace in which containerd keeps what belongs to Kubernetes.
pub(crate) const NAMESPACE: &str = "k8s.io";

/// Starts containerd on the guest's disk, gives it the images, and ends it in good order.
pub(crate) async fn fill_disk(bin: &Path, archive: &Path, log: &Path) -> Result<(), Error> {
    let (first, _) = super::disks()?;
    disk::attach(&first)?;
    config::write_containerd(bin)?;
    let file = open_log(log)?;
    let same = file.try_clone().map_err(Error::at("open", log))?;
    let mut containerd = services::daemon(&bin.join("containerd"), bin)
        .stdout(file)
        .stderr(same)
        .spawn()
        .map_err(|source| Error::Start { program: "containerd".into(), source })?;
    services::wait_for_containerd().await?;
    say(&import(bin, archive).await?);
    // What it has not written down would be missing on every node.
    if let Some(pid) = containerd.id().and_then(|pid| i32::try_from(pid).ok()) {
        kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(Error::io("end containerd"))?;
    }
    let late = |_| Error::Late { what: "containerd to end".into(), limit: END_LIMIT, seen: "it runs".into() };
    timeout(END_LIMIT, containerd.wait()).await.map_err(late)?.map_err(Error::io("wait for containerd"))?;
    Ok(())
}

async fn import(bin: &Path, archive: &Path) -> Result<String, Error> {
    let mut ctr = command(bin.join("ctr"));
    ctr.args(["--namespace", NAMESPACE, "images", "import", "--local", "--discard-unpacked-layers"])
        .arg(archive);
    succeed(&mut ctr, IMPORT_LIMIT).await
}
