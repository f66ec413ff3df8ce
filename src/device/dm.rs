use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sysfs::Sysfs;
use super::{Access, BlockDevice, DeviceError, Pinned, blocking, node, pin};
use crate::types::{Bytes, DeviceNumber, DmName, DmUuid};

/// The device-mapper devices of this machine, as sysfs and `/dev` show them.
#[derive(Debug, Clone)]
pub struct Dm {
    inner: Arc<Places>,
}

#[derive(Debug)]
struct Places {
    sysfs: Sysfs,
    dev: PathBuf,
    nodes: PathBuf,
}

impl Dm {
    /// The devices of this machine. `nodes` is a folder of our own for nodes that `/dev` lacks; it must
    /// not lie on a file system mounted `nodev`, as `/run` usually is.
    pub fn new(nodes: impl Into<PathBuf>) -> Self {
        Self::at("/sys".into(), "/dev".into(), nodes.into())
    }

    fn at(sys: PathBuf, dev: PathBuf, nodes: PathBuf) -> Self {
        Self { inner: Arc::new(Places { sysfs: Sysfs::at(sys), dev, nodes }) }
    }

    /// The device of a volume; `None` if the kernel has none, so that the volume is not active. `name`
    /// says where to look first, `uuid` alone says whether it is the one.
    ///
    /// # Errors
    /// [`DeviceError::NoNode`]: it is active, and nothing leads to it ([`Self::make_node`] helps); or
    /// sysfs cannot be read.
    pub async fn find(&self, name: &DmName, uuid: &DmUuid) -> Result<Option<BlockDevice>, DeviceError> {
        let (name, uuid) = (name.clone(), uuid.clone());
        self.on_a_thread(move |places| places.find(&name, &uuid)).await
    }

    /// The device of a volume, as [`Self::find`] finds it; if nothing leads to it, a node is made.
    ///
    /// # Errors
    /// The node cannot be made, or sysfs cannot be read.
    pub async fn find_or_heal(
        &self,
        name: &DmName,
        uuid: &DmUuid,
    ) -> Result<Option<BlockDevice>, DeviceError> {
        match self.find(name, uuid).await {
            Err(DeviceError::NoNode { number, kernel }) => {
                tracing::warn!(%number, kernel, "no node in /dev leads to this volume: making one");
                self.make_node(number).await?;
                self.find(name, uuid).await
            }
            found => found,
        }
    }

    /// Makes a node for a device in the folder of our own, and gives its path (mknod(2)).
    ///
    /// # Errors
    /// The folder or the node cannot be made.
    pub async fn make_node(&self, number: DeviceNumber) -> Result<PathBuf, DeviceError> {
        self.on_a_thread(move |places| node::make(&places.nodes, number)).await
    }

    /// The same device by the kernel's own path to it, which stays when the volume's group is renamed. It is
    /// for mount(2): what is mounted stands in the mount table by its path, and programs such as resize2fs
    /// find out by that what is mounted where.
    ///
    /// # Errors
    /// The path cannot be looked at. One that does not lead to the device is not taken.
    pub async fn by_kernel_name(&self, device: &BlockDevice) -> Result<BlockDevice, DeviceError> {
        let device = device.clone();
        self.on_a_thread(move |places| {
            let path = places.dev.join(places.sysfs.kernel_name(device.number));
            let leads_there = node_number(&path)? == Some(device.number);
            Ok(if leads_there { BlockDevice { path, ..device } } else { device })
        })
        .await
    }

    /// Opens a device and then looks whether it is the one that was found. For as long as the result
    /// lives, its number and its identity belong together.
    ///
    /// # Errors
    /// [`DeviceError::Moved`], [`DeviceError::Replaced`], [`DeviceError::Suspended`];
    /// [`DeviceError::InUse`] with [`Access::Exclusive`] only; or it cannot be opened.
    pub async fn pin(&self, device: &BlockDevice, access: Access) -> Result<Pinned, DeviceError> {
        let device = device.clone();
        self.on_a_thread(move |places| pin::open(&places.sysfs, device, access)).await
    }

    /// The identity of the device with that number; `None` if there is none, or device mapper did not
    /// make it.
    ///
    /// # Errors
    /// Sysfs cannot be read.
    pub async fn uuid(&self, number: DeviceNumber) -> Result<Option<DmUuid>, DeviceError> {
        self.on_a_thread(move |places| places.sysfs.uuid(number)).await
    }

    /// The name that device mapper knows the device with that number by; `None` if there is none, or
    /// device mapper did not make it.
    ///
    /// # Errors
    /// Sysfs cannot be read.
    pub async fn name(&self, number: DeviceNumber) -> Result<Option<DmName>, DeviceError> {
        let name = self.on_a_thread(move |places| places.sysfs.name(number)).await?;
        Ok(name.map(DmName::from))
    }

    /// The size of the device with that number, as the kernel's table has it.
    ///
    /// # Errors
    /// There is no such device.
    pub async fn size(&self, number: DeviceNumber) -> Result<Bytes, DeviceError> {
        self.on_a_thread(move |places| places.sysfs.size(number)).await
    }

    /// Whether the device with that number is suspended: reading and writing wait until it is resumed.
    ///
    /// # Errors
    /// There is no such device.
    pub async fn suspended(&self, number: DeviceNumber) -> Result<bool, DeviceError> {
        self.on_a_thread(move |places| places.sysfs.suspended(number)).await
    }

    /// The kernel's names of the devices that lie on the device with that number: other device-mapper
    /// devices, RAID. Loop devices are not among them (they only open what they lie on). `None` if there is
    /// no such device.
    ///
    /// # Errors
    /// What the kernel tells cannot be read.
    pub async fn holders(&self, number: DeviceNumber) -> Result<Option<Vec<String>>, DeviceError> {
        self.on_a_thread(move |places| places.sysfs.holders(number)).await
    }

    /// Whether the device with that number lies on these disks alone. A disk that was away may be back under
    /// another number, while what lay on it still leads to the former one.
    ///
    /// # Errors
    /// What the kernel tells cannot be read.
    pub async fn lies_on(&self, number: DeviceNumber, disks: Vec<PathBuf>) -> Result<bool, DeviceError> {
        self.on_a_thread(move |places| {
            let disks: Result<Vec<_>, _> = disks.iter().map(|disk| node_number(disk)).collect();
            let disks: Vec<_> = disks?.into_iter().flatten().collect();
            places.are_on(places.sysfs.below(number)?, &disks)
        })
        .await
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Places) -> Result<T, DeviceError> + Send + 'static,
    ) -> Result<T, DeviceError> {
        let places = Arc::clone(&self.inner);
        blocking(move || work(&places)).await
    }
}

impl Places {
    fn find(&self, name: &DmName, uuid: &DmUuid) -> Result<Option<BlockDevice>, DeviceError> {
        let Some(number) = self.number(name, uuid)? else { return Ok(None) };
        match self.device(name, uuid, number) {
            // Somebody else removed it between two looks.
            Err(DeviceError::Gone { .. } | DeviceError::NoNode { .. })
                if self.sysfs.uuid(number)?.as_ref() != Some(uuid) =>
            {
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    fn device(&self, name: &DmName, uuid: &DmUuid, number: DeviceNumber) -> Result<BlockDevice, DeviceError> {
        for path in self.candidates(name, number)? {
            if node_number(&path)? == Some(number) {
                let suspended = self.sysfs.suspended(number)?;
                return Ok(BlockDevice { number, path, uuid: uuid.clone(), suspended });
            }
        }
        Err(DeviceError::NoNode { number, kernel: self.sysfs.kernel_name(number) })
    }

    /// Whether devices are among the disks, or lie on them. Disks may lie on others in turn, as those of several
    /// paths do: whatever is below them is theirs.
    fn are_on(&self, devices: Vec<DeviceNumber>, disks: &[DeviceNumber]) -> Result<bool, DeviceError> {
        for device in devices.into_iter().filter(|device| !disks.contains(device)) {
            let below = self.sysfs.below(device)?;
            if below.is_empty() || !self.are_on(below, disks)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number of the volume's device: by its usual name, which is quick, or by a look at all.
    fn number(&self, name: &DmName, uuid: &DmUuid) -> Result<Option<DeviceNumber>, DeviceError> {
        let hinted = node_number(&self.dev.join("mapper").join(name.as_str()))?;
        match hinted {
            Some(number) if self.sysfs.uuid(number)?.as_ref() == Some(uuid) => Ok(Some(number)),
            _ => self.sysfs.find(uuid),
        }
    }

    /// The paths that may lead to a device: the name that LVM gives it, the one that it has now
    /// (vgrename), the kernel's own, and the node that we may have made.
    fn candidates(&self, name: &DmName, number: DeviceNumber) -> Result<Vec<PathBuf>, DeviceError> {
        let mapper = self.dev.join("mapper");
        let mut paths = vec![mapper.join(name.as_str())];
        paths.extend(self.sysfs.name(number)?.map(|name| mapper.join(name)));
        paths.push(self.dev.join(self.sysfs.kernel_name(number)));
        paths.push(node::path(&self.nodes, number));
        Ok(paths)
    }
}

/// The number of the block device that a path leads to; `None` if it leads to none.
fn node_number(path: &Path) -> Result<Option<DeviceNumber>, DeviceError> {
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => Ok(Some(DeviceNumber::from_dev(found.rdev()))),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(DeviceError::io(path, "cannot be looked at", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const UUID: &str = "LVM-Zvlifi";

    /// A sysfs with one device 254:3 of that identity, and a `/dev` without nodes.
    fn machine(folder: &Path) -> Dm {
        let device = folder.join("sys/devices/virtual/block/dm-3");
        fs::create_dir_all(device.join("dm")).unwrap();
        for (file, text) in [("dev", "254:3\n"), ("size", "8192\n"), ("dm/uuid", "LVM-Zvlifi\n")] {
            fs::write(device.join(file), text).unwrap();
        }
        fs::write(device.join("dm/suspended"), "1\n").unwrap();
        for (from, to) in [("sys/block", "dm-3"), ("sys/dev/block", "254:3")] {
            fs::create_dir_all(folder.join(from)).unwrap();
            std::os::unix::fs::symlink(&device, folder.join(from).join(to)).unwrap();
        }
        fs::create_dir_all(folder.join("sys/block/sda")).unwrap();
        Dm::at(folder.join("sys"), folder.join("dev"), folder.join("nodes"))
    }

    fn name() -> DmName {
        DmName::of(&"vg".parse().unwrap(), &"pvc-1".parse().unwrap())
    }

    #[tokio::test]
    async fn an_active_volume_without_a_node_is_not_taken_for_inactive() {
        let folder = tempfile::tempdir().unwrap();
        let dm = machine(folder.path());
        let error = dm.find(&name(), &UUID.parse().unwrap()).await.unwrap_err();
        assert!(matches!(&error, DeviceError::NoNode { kernel, .. } if kernel == "dm-3"), "{error}");
    }

    #[tokio::test]
    async fn a_volume_that_the_kernel_does_not_have_is_not_active() {
        let folder = tempfile::tempdir().unwrap();
        let dm = machine(folder.path());
        assert_eq!(dm.find(&name(), &"LVM-other".parse().unwrap()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_volume_that_goes_away_while_it_is_looked_for_is_not_active() {
        let folder = tempfile::tempdir().unwrap();
        let dm = machine(folder.path());
        fs::remove_file(folder.path().join("sys/dev/block/254:3")).unwrap();
        assert_eq!(dm.find_or_heal(&name(), &UUID.parse().unwrap()).await.unwrap(), None);
        assert!(!folder.path().join("nodes").exists());
    }

    #[tokio::test]
    async fn sysfs_is_read_in_its_own_units() {
        let folder = tempfile::tempdir().unwrap();
        let dm = machine(folder.path());
        let number = "254:3".parse().unwrap();
        assert_eq!(dm.size(number).await.unwrap(), Bytes::mib(4));
        assert_eq!(dm.uuid(number).await.unwrap(), Some(UUID.parse().unwrap()));
        let other = "254:4".parse().unwrap();
        assert_eq!(dm.uuid(other).await.unwrap(), None);
        assert!(matches!(dm.size(other).await, Err(DeviceError::Gone { number }) if number == other));
        fs::write(folder.path().join("sys/dev/block/254:3/size"), "yes").unwrap();
        assert!(matches!(dm.size(number).await, Err(DeviceError::Unreadable { .. })));
    }
}
