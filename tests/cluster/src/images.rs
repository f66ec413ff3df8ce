//! Container images without a registry, and a disk that has them all, ready to be copied for each node.
//!
//! Importing images takes a guest longer than anything else in a node's start. So it is done once, on a disk that is
//! kept until an image changes.

mod archive;
mod base;
mod disk;

use std::path::PathBuf;

use crate::paths::{self, Paths};
use crate::{Error, programs};

pub use archive::{Image, Layer, write_archive};
pub(crate) use base::PAUSE;
pub(crate) use disk::copy as copy_disk;

/// Makes what is missing, and returns the disk that every node's own disk starts as.
///
/// # Errors
///
/// When an image or the disk cannot be made.
pub async fn prepare(paths: &Paths) -> Result<PathBuf, Error> {
    let programs = programs::build(paths).await?;
    let images = paths.images();
    paths::make_folder(&images)?;
    let archive = base::build(paths, &programs).await?;
    disk::build(paths, &archive).await
}

/// Removes all files in the folder of images that have this beginning, except one.
fn keep_only(paths: &Paths, beginning: &str, kept: &std::path::Path) -> Result<(), Error> {
    let folder = paths.images();
    let entries = std::fs::read_dir(&folder).map_err(Error::at("read", &folder))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path != kept)
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning)))
        .try_for_each(|path| paths::remove(&path))
}
