//! A machine whose disk can be slowed down, so that zeroing can be met in the middle.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;
use tonic::Status;

use super::bench::{DIRT, device, dirty_free_space};
use super::mkfs::{count_mkfs, meet_mkfs, mkfs_is_held};
use super::strace::Act;
use super::{id, name, staging};
use crate::driver::{self, Client, MIB, Mode, VG, command, make_group, until};

/// The name of the slow disk.
const SLOW: &str = "slow";

/// How long a write takes while a volume is zeroed, in milliseconds: a chunk takes that long, a commit a
/// few times that.
const DELAY: u32 = 200;

/// The size of the volumes that are formatted.
pub(super) const SIZE: u64 = 64 * MIB;

/// The size of one with that file system.
pub(super) fn size(mode: Mode) -> u64 {
    SIZE.max(mode.size())
}

/// The size of the volumes that are zeroed: eight chunks, between which zeroing looks whether to stop.
pub(super) const LARGE: u64 = 512 * MIB;

/// How long something is watched that must not happen.
const WHILE: Duration = Duration::from_secs(1);

/// Boots a machine with the group [`VG`] on a disk that a test can slow down.
pub(super) fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("2G").boot(|| {
        make_group(VG, &[slow_disk()]);
        count_mkfs();
        driver::run(body());
    });
}

/// Makes the machine's disk one that can be slowed down.
pub(super) fn slow_disk() -> PathBuf {
    command("modprobe", &["dm-delay"]);
    command("dmsetup", &["create", SLOW, "--table", &table(0)]);
    Path::new("/dev/mapper").join(SLOW)
}

/// Makes the disk slow.
pub(super) fn slow_down() {
    delay(DELAY);
}

/// Makes it fast again.
pub(super) fn speed_up() {
    delay(0);
}

fn delay(milliseconds: u32) {
    command("dmsetup", &["reload", SLOW, "--table", &table(milliseconds)]);
    command("dmsetup", &["resume", SLOW]);
}

/// A table that leaves out the disk's first MiB: LVM would find its label twice.
fn table(milliseconds: u32) -> String {
    const LEFT_OUT: u64 = 2048;
    let disk = lab::disks()[0].to_str().unwrap().to_owned();
    let sectors: u64 = command("blockdev", &["--getsz", &disk]).trim().parse().unwrap();
    let (size, from) = (sectors - LEFT_OUT, format!("{disk} {LEFT_OUT}"));
    format!("0 {size} delay {from} 0 {from} {milliseconds}")
}

/// Begins to create a volume whose mkfs is held at its fifth write.
pub(super) async fn create_held(client: &mut Client, mode: Mode) {
    meet_mkfs(Act::Hold, 5);
    client.create(&name(1), size(mode), mode).await.unwrap();
    mkfs_is_held(5).await;
}

/// Creates a large raw volume on a disk that is slow from now on, and returns when its first chunk is
/// zero and its last is not.
pub(super) async fn create_half_zeroed(client: &mut Client) {
    dirty_free_space();
    slow_down();
    client.create(&name(1), LARGE, Mode::Block).await.unwrap();
    is_half_zeroed(&name(1)).await;
}

/// Waits until the first chunk of an LV of that size is zero, and holds that its last is not.
pub(super) async fn is_half_zeroed(lv: &str) {
    let device = device(lv);
    until("the first chunk is zero", async || byte_at(&device, 0) == Some(0)).await;
    assert_eq!(byte_at(&device, LARGE - MIB), Some(DIRT), "the disk is too fast for this test");
}

/// A byte of a device, if there is that device.
pub(super) fn byte_at(device: &Path, place: u64) -> Option<u8> {
    let mut byte = [1];
    File::open(device).ok()?.read_exact_at(&mut byte, place).ok()?;
    Some(byte[0])
}

/// Makes a call that has to wait, and holds that it does.
pub(super) async fn waits<T: Send + 'static>(
    call: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> JoinHandle<Result<T, Status>> {
    let mut call = tokio::spawn(call);
    let early = tokio::time::timeout(WHILE, &mut call).await;
    assert!(early.is_err(), "the call did not wait: {:?}", early.unwrap().unwrap().err());
    call
}

/// Stages the volume, as one call of its own.
pub(super) fn stage(
    client: &Client,
    mode: Mode,
) -> impl Future<Output = Result<(), Status>> + Send + 'static {
    let (mut client, id, staging) = (client.clone(), id(1), staging(1));
    async move { client.stage(&id, &staging, mode).await }
}

/// Expands the volume, as one call of its own.
pub(super) fn expand(
    client: &Client,
    size: u64,
    mode: Mode,
) -> impl Future<Output = Result<u64, Status>> + Send + 'static {
    let (mut client, id) = (client.clone(), id(1));
    async move { client.expand(&id, size, mode).await }
}
