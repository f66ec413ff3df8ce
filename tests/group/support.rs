//! What the tests of groups share.

use std::path::{Path, PathBuf};

use tonic::Code;

use crate::driver::{self, Client, Driver, MIB, Mode, SIZE, VG, Volume, make_group, refused, sh, until};

/// A second group, which nothing befalls.
pub(super) const OTHER: &str = "vg1";

/// Boots a machine with three disks: [`VG`] on the first, [`OTHER`] on the second, nothing on the third.
pub(super) fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("512M").disk("512M").disk("512M").boot(|| {
        make_group(VG, &lab::disks()[..1]);
        make_group(OTHER, &lab::disks()[1..2]);
        driver::run(body());
    });
}

/// Starts a driver on both groups, with these arguments too.
pub(super) async fn start(arguments: &[&str]) -> (Driver, Client) {
    let groups = ["--volume-group", VG, "--volume-group", OTHER];
    let driver = Driver::start_with(&[&groups[..], arguments].concat()).await;
    let client = driver.client().await;
    (driver, client)
}

/// The third disk.
pub(super) fn spare() -> PathBuf {
    lab::disks().remove(2)
}

/// Lets the kernel say that something is new about a disk, as udev does for one that somebody wrote to.
pub(super) fn announce(disk: &Path) {
    let name = disk.file_name().unwrap().to_str().unwrap();
    std::fs::write(format!("/sys/block/{name}/uevent"), "change").unwrap();
}

/// Lets LVM not find the disk any more, whoever uses it.
pub(super) fn hide(disk: &Path) {
    let disk_name = disk.display();
    sh(&format!(
        "dd if={disk_name} of=/hidden bs=1M count=1 status=none; dd if=/dev/zero of={disk_name} bs=1M count=1 conv=fsync status=none"
    ));
}

pub(super) fn bring_back(disk: &Path) {
    sh(&format!("dd if=/hidden of={} conv=fsync status=none", disk.display()));
    announce(disk);
}

/// A disk that does what a test wants.
pub(super) const FICKLE: &str = "/dev/mapper/fickle";

/// What a fickle disk does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does {
    /// What is asked of it.
    Serve,
    /// It returns errors.
    Fail,
    /// It returns errors to those who write.
    FailWrites,
}

impl Does {
    /// The machine's first disk, shown so. Its first MiB is left out, since LVM would find the group twice.
    fn table(self) -> String {
        let disk = lab::disks().remove(0).display().to_string();
        let sectors = sh(&format!("blockdev --getsz {disk}")).trim().parse::<u64>().unwrap() - 2048;
        match self {
            Self::Serve => format!("0 {sectors} linear {disk} 2048"),
            Self::Fail => format!("0 {sectors} error"),
            Self::FailWrites => format!("0 {sectors} flakey {disk} 2048 0 3600 1 error_writes"),
        }
    }
}

/// Makes [`FICKLE`] of the machine's first disk.
pub(super) fn make_disk() {
    sh(&format!("modprobe dm-flakey; dmsetup create fickle --table '{}'", Does::Serve.table()));
}

/// The same, and a group on it.
pub(super) fn make_fickle(vg: &str) {
    make_disk();
    make_group(vg, &[FICKLE.into()]);
}

/// From now on the fickle disk does that.
pub(super) fn now(does: Does) {
    sh(&format!("dmsetup load fickle --table '{}'", does.table()));
    sh("dmsetup suspend --noflush --nolockfs fickle; dmsetup resume fickle");
}

/// A volume with a file in it that is not in use and not active.
pub(super) async fn resting(client: &Client, name: &str) -> Volume {
    let volume = Volume::in_use(client, name, Mode::Ext4).await;
    std::fs::write(volume.target.join("marker"), "kept").unwrap();
    volume.end().await;
    sh(&format!("lvchange -an {}", volume.lv()));
    volume
}

/// Demands that a volume can be used, and holds what it held.
pub(super) async fn works(volume: &Volume) {
    volume.start().await;
    assert_eq!(std::fs::read_to_string(volume.target.join("marker")).unwrap(), "kept");
    volume.end().await;
}

/// Demands that nothing can be made in [`VG`] for that reason, and that its capacity says so at that
/// instant; and that the other group goes on, also for those who do not care where.
pub(super) async fn takes_nothing(client: &Client, reason: &str) {
    let mut client = client.clone();
    refused(client.create_in(VG, "pvc-never", SIZE, Mode::Block).await, Code::ResourceExhausted, reason);
    assert_eq!(client.capacity_in(VG).await.unwrap(), (0, 0));
    let (room, _) = client.capacity_in(OTHER).await.unwrap();
    assert_eq!(client.capacity().await.unwrap(), (room, room));
    for answer in [
        client.create_in(OTHER, "pvc-there", SIZE, Mode::Block).await,
        client.create("pvc-any", SIZE, Mode::Block).await,
    ] {
        client.delete(&answer.unwrap().volume_id).await.unwrap();
    }
}

/// Waits until volumes are made in [`VG`] again.
pub(super) async fn recovers(client: &Client) {
    let mut client = client.clone();
    until("the group is well again", async || client.capacity_in(VG).await.unwrap().0 > 64 * MIB).await;
    let made = client.create_in(VG, "pvc-again", SIZE, Mode::Block).await.unwrap();
    client.delete(&made.volume_id).await.unwrap();
}
