//! What an image was built from, as one number: an image that was built from the same is not built again.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Plan;
use crate::error::Error;

/// The files beside the driver that decide what the image is.
const FILES: [&str; 2] = ["Dockerfile", "deploy/image/collect"];

/// The number, in hexadecimal digits.
///
/// # Errors
/// A file cannot be read.
pub(super) fn of(plan: &Plan) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for word in [plan.name.as_str(), plan.arch.name(), &plan.builder.to_string()] {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    for file in FILES.into_iter().chain([plan.binary.as_str()]) {
        let path = plan.root.join(file);
        let content = fs::read(&path).map_err(Error::at("read", &path))?;
        // Each file for itself: what moves from one into another is a change.
        hash.update(Sha256::digest(&content));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether the archive was built from that.
pub(super) fn is_current(archive: &Path, key: &str) -> bool {
    archive.is_file() && fs::read_to_string(beside(archive)).is_ok_and(|written| written == key)
}

/// Keeps the number beside the archive.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(archive: &Path, key: &str) -> Result<(), Error> {
    let path = beside(archive);
    fs::write(&path, key).map_err(Error::at("write", &path))
}

fn beside(archive: &Path) -> PathBuf {
    archive.with_extension("key")
}
