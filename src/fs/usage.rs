use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::FsError;

/// How full a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// In bytes.
    pub bytes: Amount,
    /// In inodes: files, folders and the like.
    pub inodes: Amount,
}

/// How much there is of something. What is neither used nor available is kept for root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// All of it, without what the file system needs for itself.
    pub total: u64,
    /// What is used.
    pub used: u64,
    /// What anybody may still take.
    pub available: u64,
}

/// Asks the kernel, which may wait for the disk.
pub(super) fn now(mount_point: &Path) -> Result<Usage, FsError> {
    let found =
        statvfs(mount_point).map_err(|error| FsError::io(mount_point, "does not tell its usage", error))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size());
    Ok(Usage {
        bytes: Amount {
            total: bytes(found.blocks()),
            used: bytes(found.blocks().saturating_sub(found.blocks_free())),
            available: bytes(found.blocks_available()),
        },
        inodes: Amount {
            total: found.files(),
            used: found.files().saturating_sub(found.files_free()),
            available: found.files_available(),
        },
    })
}
