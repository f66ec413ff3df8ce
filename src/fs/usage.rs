use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::FsError;
use super::gauge::GAUGE;

/// How full a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// In bytes.
    pub bytes: Count,
    /// In inodes: files, folders and the like.
    pub inodes: Count,
}

/// How much there is of something. What is neither used nor available the file system keeps for hard
/// times of its own (ext4: 2 %, at most 16 MiB), or for root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// All of it, without what the file system needs for itself.
    pub total: u64,
    /// What is used.
    pub used: u64,
    /// What anybody may still take.
    pub available: u64,
}

/// How full the file system at a mount point is (statvfs(3)). Whoever asks one that does not answer waits
/// for five seconds, or not at all if others wait there already.
///
/// # Errors
/// [`FsError::Overdue`]: it does not answer; or it fails.
pub async fn usage(mount_point: &Path) -> Result<Usage, FsError> {
    GAUGE.ask(mount_point, now).await
}

/// Asks the kernel, which may wait for the disk.
fn now(mount_point: &Path) -> Result<Usage, FsError> {
    let found =
        statvfs(mount_point).map_err(|error| FsError::io(mount_point, "does not tell its usage", error))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size());
    Ok(Usage {
        bytes: Count {
            total: bytes(found.blocks()),
            used: bytes(found.blocks().saturating_sub(found.blocks_free())),
            available: bytes(found.blocks_available()),
        },
        inodes: Count {
            total: found.files(),
            used: found.files().saturating_sub(found.files_free()),
            available: found.files_available(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_system_tells_its_usage() {
        let folder = tempfile::tempdir().unwrap();
        let found = usage(folder.path()).await.unwrap();
        assert!(found.bytes.total > 0 && found.bytes.total >= found.bytes.used + found.bytes.available);
        assert!(usage(Path::new("/nonexistent")).await.is_err());
    }
}
