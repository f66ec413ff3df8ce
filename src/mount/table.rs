use std::path::Path;

use super::mountinfo::{self, Mount};
use super::{MountError, blocking, target};
use crate::types::{DeviceNumber, TargetPath};

/// The kernel's list of this process's mounts.
const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Everything that was mounted at one moment, in the kernel's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountTable {
    mounts: Vec<Mount>,
}

impl MountTable {
    /// Reads the table. It is all in the kernel's memory: no disk and no network is asked.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn read() -> Result<Self, MountError> {
        blocking(Self::read_now).await
    }

    /// The same for threads that may block.
    pub(super) fn read_now() -> Result<Self, MountError> {
        let text = std::fs::read(MOUNTINFO);
        let text = text.map_err(|source| MountError::io(Path::new(MOUNTINFO), "cannot be read", source))?;
        Ok(Self::parse(&text))
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        Self { mounts: mountinfo::parse(text) }
    }

    /// All mounts.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// What is mounted at a path, which must be without symbolic links: where several mounts lie on each
    /// other, the topmost.
    pub fn at(&self, path: &Path) -> Option<&Mount> {
        let here = || self.mounts.iter().filter(|mount| mount.target == path);
        let covered = |mount: &Mount| here().any(|other| other.parent == mount.id && other.id != mount.id);
        here().rfind(|mount| !covered(mount)).or_else(|| here().next_back())
    }

    /// Every mount of the file system with that device number, bind mounts included.
    pub fn of_device(&self, number: DeviceNumber) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(move |mount| mount.device == number)
    }

    /// The mount that a path without symbolic links lies in.
    pub fn containing(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|folder| self.at(folder))
    }
}

/// Whether what is mounted below a folder is seen by others too, by the host above all: a container
/// needs its kubelet folder mounted with `mountPropagation: Bidirectional`, else pods see empty volumes
/// (mount_namespaces(7), "shared").
///
/// # Errors
/// The folder is not there, or the mount table cannot be read.
pub async fn is_shared(folder: &TargetPath) -> Result<bool, MountError> {
    let folder = target::resolve_all(folder).await?;
    let table = MountTable::read().await?;
    Ok(table.containing(&folder).is_some_and(|mount| mount.shared.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
30 20 254:0 / /pods/a rw shared:2 - ext4 /dev/dm-0 rw
32 31 254:2 / /pods/a rw - ext4 /dev/dm-2 rw
31 30 254:1 / /pods/a rw - ext4 /dev/dm-1 rw
33 20 254:0 / /pods/b ro - ext4 /dev/dm-0 rw
34 20 0:5 /dm-3 /pods/a\\040b rw - devtmpfs dev rw
";

    #[test]
    fn the_topmost_of_stacked_mounts_counts_in_whatever_order_they_are_listed() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.at(Path::new("/pods/a")).unwrap().id, 32);
        assert_eq!(table.at(Path::new("/pods/a b")).unwrap().id, 34);
        assert_eq!(table.at(Path::new("/pods")), None);
    }

    #[test]
    fn a_device_is_found_wherever_it_is_mounted() {
        let table = MountTable::parse(TABLE);
        let found: Vec<u64> = table.of_device("254:0".parse().unwrap()).map(|mount| mount.id).collect();
        assert_eq!(found, [30, 33]);
    }

    #[test]
    fn a_path_lies_in_the_nearest_mount_above_it() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.containing(Path::new("/pods/b/c/d")).unwrap().id, 33);
        assert_eq!(table.containing(Path::new("/pods/bc")).unwrap().id, 20);
        assert!(table.containing(Path::new("/pods/bc")).unwrap().shared.is_some());
    }
}
