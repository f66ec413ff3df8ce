//! A volume is being prepared when the driver is killed, or when calls arrive that cannot wait.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::task::JoinHandle;
use tonic::Status;

use super::bench::{
    DIRT, count_mkfs, device, dirty_free_space, file_system_size, free, holds_exactly, holds_only, lvs,
    mkfs_runs, run_mkfs_by, set_delay, slow_disk,
};
use super::strace::{Act, processes, send};
use super::{holds_volumes, id, name, staging};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command, make_group, mounts_at, until};

/// The writes that a held mke2fs has made.
const WRITES: &str = "/run/mkfs.writes";

/// The size of the volumes that are formatted.
const SIZE: u64 = 64 * MIB;

/// The size of the volumes that are zeroed: eight chunks, between which zeroing looks whether to stop.
const LARGE: u64 = 512 * MIB;

/// How long a write takes while a volume is zeroed: a chunk takes that long, a commit a few times that.
const DELAY: u32 = 200;

/// How long something is watched that must not happen.
const WHILE: Duration = Duration::from_secs(1);

/// From now on mke2fs is met with that at its `number`th write.
fn meet_mkfs(act: Act, number: usize) {
    let _ = fs::remove_file(WRITES);
    let inject = format!("-e inject=pwrite64:{}:when={number}", act.word());
    // With -D strace is no parent: mke2fs is the driver's child as ever, and outlives strace.
    run_mkfs_by(&format!("exec strace -D -qq -o {WRITES} -e trace=pwrite64 {inject} \"$real\" \"$@\""));
}

/// Waits until mke2fs is about to make its `number`th write.
async fn mkfs_is_held(number: usize) {
    let writes = || fs::read_to_string(WRITES).unwrap_or_default().lines().count();
    until("mke2fs is in the middle", async || writes() + 1 >= number).await;
}

/// Lets go of mke2fs. From now on it runs freely.
fn release_mkfs() {
    count_mkfs();
    processes("strace").into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
}

/// A machine with the group [`VG`] on a disk that a test can slow down.
fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &[slow_disk(&lab::disks()[0])]);
        count_mkfs();
        driver::run(body());
    });
}

fn delay(milliseconds: u32) {
    set_delay(&lab::disks()[0], milliseconds);
}

/// Begins to create a volume whose mkfs is held at its fifth write.
async fn create_held(client: &mut Client) {
    meet_mkfs(Act::Hold, 5);
    client.create(&name(1), SIZE, Mode::Ext4).await.unwrap();
    mkfs_is_held(5).await;
}

/// Creates a large raw volume, and returns when its first chunk is zero and its last is not.
async fn create_half_zeroed(client: &mut Client) {
    dirty_free_space();
    delay(DELAY);
    client.create(&name(1), LARGE, Mode::Block).await.unwrap();
    let device = device(&name(1));
    until("the first chunk is zero", async || first_byte(&device, 0) == 0).await;
    assert_eq!(first_byte(&device, LARGE - MIB), DIRT, "the disk is too fast for this test");
}

fn first_byte(device: &Path, at: u64) -> u8 {
    use std::os::unix::fs::FileExt as _;
    let mut byte = [1];
    fs::File::open(device).unwrap().read_exact_at(&mut byte, at).unwrap();
    byte[0]
}

/// Makes a call that has to wait, and holds that it does.
async fn waits<T: Send + 'static>(
    call: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> JoinHandle<Result<T, Status>> {
    let mut call = tokio::spawn(call);
    let early = tokio::time::timeout(WHILE, &mut call).await;
    assert!(early.is_err(), "the call did not wait: {}", early.unwrap().unwrap().err().unwrap());
    call
}

/// Stages the volume, as one call of its own.
fn stage(client: &Client, mode: Mode) -> impl Future<Output = Result<(), Status>> + Send + 'static {
    let (mut client, id, staging) = (client.clone(), id(1), staging(1));
    async move { client.stage(&id, &staging, mode).await }
}

#[test]
fn a_mkfs_that_outlives_its_driver_is_waited_for_and_its_file_system_is_taken() {
    boot(async || {
        let driver = Driver::start().await;
        create_held(&mut driver.client().await).await;
        driver.kill();
        let driver = Driver::start().await;
        let call = waits(stage(&driver.client().await, Mode::Ext4)).await;
        assert_eq!(mkfs_runs(), 1, "a second mkfs was begun beside the first");
        release_mkfs();
        call.await.unwrap().unwrap();
        assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 1));
        holds_volumes([1], SIZE);
    });
}

#[test]
fn a_delete_waits_for_a_mkfs_whether_its_driver_lives_or_not() {
    boot(async || {
        let before = free();
        let mut driver = Driver::start().await;
        for killed in [false, true] {
            create_held(&mut driver.client().await).await;
            if killed {
                driver.kill();
                driver = Driver::start().await;
            }
            let (mut client, id) = (driver.client().await, id(1));
            let call = waits(async move { client.delete(&id).await }).await;
            release_mkfs();
            call.await.unwrap().unwrap();
            holds_exactly([]);
            assert_eq!(driver.client().await.capacity().await.unwrap().0, before);
        }
    });
}

#[test]
fn a_driver_that_is_killed_while_it_zeroes_a_volume_leaves_that_to_the_next() {
    boot(async || {
        let driver = Driver::start().await;
        create_half_zeroed(&mut driver.client().await).await;
        driver.kill();
        assert_eq!(first_byte(&device(&name(1)), LARGE - MIB), DIRT);
        assert_eq!(lvs()[&name(1)].state, "b");
        delay(0);
        let driver = Driver::start().await;
        stage(&driver.client().await, Mode::Block).await.unwrap();
        holds_only(&device(&name(1)), 0, LARGE, 0);
        holds_volumes([1], LARGE);
    });
}

#[test]
fn a_delete_ends_the_zeroing_of_a_volume() {
    boot(async || {
        let before = free();
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        create_half_zeroed(&mut client).await;
        client.delete(&id(1)).await.unwrap();
        holds_exactly([]);
        delay(0);
        assert_eq!(client.capacity().await.unwrap().0, before);
        command("lvcreate", &["-q", "-y", "-Wn", "-Zn", "-n", "seen", "-L", &format!("{LARGE}b"), VG]);
        assert_eq!(first_byte(&device("seen"), LARGE - MIB), DIRT, "it was zeroed to its end");
    });
}

#[test]
fn an_expansion_joins_the_preparation_and_then_grows_the_volume() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        create_held(&mut client).await;
        let call = waits({
            let (mut client, id) = (client.clone(), id(1));
            async move { client.expand(&id, 2 * SIZE, Mode::Ext4).await }
        });
        let call = call.await;
        release_mkfs();
        assert_eq!(call.await.unwrap().unwrap(), 2 * SIZE);
        client.stage(&id(1), &staging(1), Mode::Ext4).await.unwrap();
        assert_eq!(file_system_size(&device(&name(1))), 2 * SIZE);
        holds_volumes([1], 2 * SIZE);
        assert_eq!(mkfs_runs(), 1);
        client.unstage(&id(1), &staging(1)).await.unwrap();
        client.delete(&id(1)).await.unwrap();

        create_half_zeroed(&mut client).await;
        let size = LARGE + 4 * MIB;
        let grown = client.expand(&id(1), size, Mode::Block).await;
        delay(0);
        assert_eq!(grown.unwrap(), size);
        client.stage(&id(1), &staging(1), Mode::Block).await.unwrap();
        holds_only(&device(&name(1)), 0, size, 0);
        holds_volumes([1], size);
    });
}

#[test]
fn a_power_cut_in_the_middle_of_a_preparation_leaves_it_to_the_next_driver() {
    let machine = lab::Machine::new().disk("1G");
    let disk = || slow_disk(&lab::disks()[0]);
    machine.boot_until_power_cut(|| {
        make_group(VG, &[disk()]);
        driver::run(async {
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            meet_mkfs(Act::Hold, 10);
            client.create(&name(2), SIZE, Mode::Ext4).await.unwrap();
            mkfs_is_held(10).await;
            create_half_zeroed(&mut client).await;
            lab::power_cut();
        });
    });
    machine.boot(|| {
        disk();
        count_mkfs();
        driver::run(async {
            assert!(lvs().values().all(|lv| lv.state == "b"));
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            client.stage(&id(1), &staging(1), Mode::Block).await.unwrap();
            client.stage(&id(2), &staging(2), Mode::Ext4).await.unwrap();
            holds_only(&device(&name(1)), 0, LARGE, 0);
            let (one, two) = (name(1), name(2));
            holds_exactly([(one.as_str(), LARGE, "u"), (two.as_str(), SIZE, "u")]);
            assert_eq!(mkfs_runs(), 1);
        });
    });
}
