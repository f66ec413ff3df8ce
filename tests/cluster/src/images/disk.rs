//! The disk that every node's own disk starts as: empty but for the images.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{End, Job, Machine, Streams};
use tokio::task::spawn_blocking;

use crate::digest::Digest;
use crate::guest::containerd_config;
use crate::paths::{self, Paths};
use crate::program::{command, succeed};
use crate::{Error, say};

/// The size of each node's own disk. It takes room on this machine only where it is written to.
const SIZE: u64 = 16 << 30;
/// Grows when the disk changes though nothing that it is made of does.
const EDITION: &str = "1";
const LIMIT: Duration = Duration::from_secs(1200);
const MKFS_LIMIT: Duration = Duration::from_secs(120);

/// Makes the disk, unless it is there.
pub(super) async fn build(paths: &Paths, archive: &Path) -> Result<PathBuf, Error> {
    let name = archive.file_name().unwrap_or_default().as_encoded_bytes();
    let key = Digest::new()
        .add(EDITION)
        .add(name)
        .add(containerd_config(Path::new("")))
        .add(SIZE.to_le_bytes())
        .to_hex();
    let disk = paths.images().join(format!("disk-{key}.img"));
    if !disk.is_file() {
        say("put the images on a disk, which takes a minute or two");
        // Under another name at first: a disk that is there is whole.
        let unfinished = paths.images().join("unfinished.img");
        make(&unfinished).await?;
        fill(paths, archive, &unfinished).await?;
        fs::rename(&unfinished, &disk).map_err(Error::at("make", &disk))?;
        super::keep_only(paths, "disk-", &disk)?;
    }
    Ok(disk)
}

/// Makes an empty file system.
async fn make(disk: &Path) -> Result<(), Error> {
    paths::remove(disk)?;
    File::create_new(disk).and_then(|file| file.set_len(SIZE)).map_err(Error::at("make", disk))?;
    let mut mkfs = command("mkfs.ext4");
    mkfs.args(["-q", "-E", "lazy_itable_init=1,lazy_journal_init=1"]).arg(disk);
    succeed(&mut mkfs, MKFS_LIMIT).await.map(drop)
}

/// Boots a guest on it that runs containerd and imports the images.
async fn fill(paths: &Paths, archive: &Path, disk: &Path) -> Result<(), Error> {
    let log = paths.images().join("import.log");
    paths::remove(&log)?;
    let mut arguments = vec![paths.program().to_owned(), "fill-disk".into()];
    arguments.extend([paths.bin(), archive.to_owned(), log]);
    // The guest writes into the disk, which it has as a device, and the log.
    let machine = Machine::new().disk_file(disk).memory("2G").limit(LIMIT).uncounted().share(paths.images());
    let finished = spawn_blocking(move || machine.start(Job::new(arguments)?, Streams::Capture)?.wait());
    let finished = finished.await.map_err(Error::other)??;
    match finished.end {
        End::Exited(0) => Ok(()),
        end => Err(Error::Failed {
            program: "the guest that imports the images".into(),
            end: format!("{end:?}"),
            output: String::from_utf8_lossy(&finished.output.stderr).into_owned(),
        }),
    }
}

/// Copies a disk, holes and all.
pub(crate) async fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut cp = command("cp");
    cp.args(["--sparse=always", "--reflink=auto"]).arg(from).arg(to);
    succeed(&mut cp, MKFS_LIMIT).await.map(drop)
}
