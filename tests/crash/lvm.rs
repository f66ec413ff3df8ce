//! LVM itself is killed at each of its device-mapper calls, while the driver lives.

use tonic::Status;

use super::bench::{
    device, devices, dirty_free_space, file_system_size, fill, holds_only, is_come_again, repeat,
};
use super::mkfs::{count_mkfs, mkfs_runs};
use super::strace::{Act, Tracer, shell_of};
use super::user::User;
use super::{holds_volumes, id, name, staging};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command, make_group, until};

/// Does the operation number 0, which is only watched, and then number 1, 2, 3 and so on. In each lvm is
/// killed at another of the calls that the first one was seen to make, and the operation is repeated.
/// `after` is looked at before the repeat, `finally` after it. Gives the number of the last operation.
async fn kill_at_every_turning_point(
    driver: &Driver,
    mut operation: impl AsyncFnMut(&mut Client, usize) -> Result<(), Status>,
    mut after: impl AsyncFnMut(usize),
    mut finally: impl AsyncFnMut(usize),
) -> usize {
    let mut client = driver.client().await;
    let shell = || shell_of(driver).expect("the driver has an lvm shell");
    let watcher = Tracer::look(shell()).await;
    operation(&mut client, 0).await.unwrap();
    let points = watcher.turning_points();
    drop(watcher);
    finally(0).await;
    for (number, point) in (1..).zip(&points) {
        let victim = shell();
        let killer = Tracer::attach(victim, Act::Kill, *point).await;
        let outcome = operation(&mut client, number).await;
        drop(killer);
        assert_ne!(shell(), victim, "lvm was to be killed at call {point}");
        after(*point).await;
        match outcome {
            Ok(()) => {}
            Err(status) if is_come_again(&status) => {
                repeat(async || operation(&mut client, number).await).await;
            }
            Err(status) => panic!("lvm was killed at call {point}: {status}"),
        }
        finally(number).await;
    }
    points.len()
}

/// A driver with an lvm shell, on a group [`VG`] of that size.
fn boot(size: &str, body: impl AsyncFnOnce(Driver)) {
    lab::Machine::new().disk(size).boot(|| {
        make_group(VG, &lab::disks());
        count_mkfs();
        driver::run(async {
            let driver = Driver::start().await;
            driver.client().await.capacity().await.unwrap();
            body(driver).await;
        });
    });
}

#[test]
fn lvm_killed_at_any_call_of_a_creation_or_a_deletion_leaves_nothing_that_the_repeat_does_not_mend() {
    const SIZE: u64 = 16 * MIB;
    boot("4G", async |driver| {
        let last = kill_at_every_turning_point(
            &driver,
            async |client, number| {
                let id = client.create(&name(number), SIZE, Mode::Ext4).await?.volume_id;
                client.stage(&id, &staging(number), Mode::Ext4).await
            },
            async |_| {},
            async |number| {
                holds_volumes(0..=number, SIZE);
                assert_eq!(mkfs_runs(), number + 1);
            },
        )
        .await;
        for number in 0..=last {
            driver.client().await.unstage(&id(number), &staging(number)).await.unwrap();
        }
        let deleted = kill_at_every_turning_point(
            &driver,
            async |client, number| client.delete(&id(number)).await,
            async |_| {},
            async |number| holds_volumes(number + 1..=last, SIZE),
        )
        .await;
        assert!(deleted < last);
    });
}

#[test]
fn lvm_killed_at_any_call_of_an_expansion_stops_the_volumes_user_for_a_moment_only() {
    const SIZE: u64 = 16 * MIB;
    const STEP: u64 = 4 * MIB;
    boot("1G", async |driver| {
        let mut client = driver.client().await;
        let volume = client.create(&name(1), SIZE, Mode::Ext4).await.unwrap().volume_id;
        client.stage(&volume, &staging(1), Mode::Ext4).await.unwrap();
        let user = User::start(staging(1).join("data"));
        let size = |number: usize| SIZE + STEP * (number as u64 + 1);
        kill_at_every_turning_point(
            &driver,
            async |client, number| {
                assert_eq!(client.expand(&volume, size(number), Mode::Ext4).await?, size(number));
                Ok(())
            },
            async |number| user.goes_on(&format!("after a kill at call {number}, and no repeat")).await,
            async |number| {
                user.goes_on("after the repeat").await;
                holds_volumes([1], size(number));
                assert_eq!(file_system_size(&device(&name(1))), size(number));
            },
        )
        .await;
        user.stop();
    });
}

#[test]
fn lvm_killed_at_any_call_of_the_growth_of_a_raw_volume_shows_nobody_elses_bytes_and_loses_none() {
    const SIZE: u64 = 4 * MIB;
    boot("1G", async |driver| {
        dirty_free_space();
        let mut client = driver.client().await;
        let volume = client.create(&name(1), SIZE, Mode::Block).await.unwrap().volume_id;
        client.stage(&volume, &staging(1), Mode::Block).await.unwrap();
        fill(&device(&name(1)), 0, SIZE, 0x55);
        let size = |number: usize| SIZE * (number as u64 + 2);
        kill_at_every_turning_point(
            &driver,
            async |client, number| {
                assert_eq!(client.expand(&volume, size(number), Mode::Block).await?, size(number));
                Ok(())
            },
            async |_| {},
            async |number| {
                let (device, to) = (device(&name(1)), size(number));
                let from = to - SIZE;
                holds_volumes([1], to);
                holds_only(&device, 0, from, 0x55);
                holds_only(&device, from, to, 0);
                fill(&device, from, to, 0x55);
            },
        )
        .await;
    });
}

#[test]
fn a_volume_that_was_left_suspended_goes_on_as_soon_as_a_driver_starts() {
    boot("1G", async |driver| {
        let mut client = driver.client().await;
        for (number, mode) in [(1, Mode::Ext4), (2, Mode::Ext4)] {
            let volume = client.create(&name(number), 16 * MIB, mode).await.unwrap().volume_id;
            client.stage(&volume, &staging(number), mode).await.unwrap();
        }
        driver.kill();
        let user = User::start(staging(1).join("data"));
        user.goes_on("before it is suspended").await;
        for number in [1, 2] {
            command("dmsetup", &["suspend", "--nolockfs", device(&name(number)).to_str().unwrap()]);
        }
        let _driver = Driver::start().await;
        user.goes_on("although nobody asks the driver for anything").await;
        until("nothing is suspended", async || devices().iter().all(|(_, suspended)| !suspended)).await;
        user.stop();
    });
}

#[test]
fn an_lvm_that_outlives_its_driver_is_waited_for() {
    boot("1G", async |driver| {
        let mut client = driver.client().await;
        let volume = client.create(&name(1), 16 * MIB, Mode::Ext4).await.unwrap().volume_id;
        client.stage(&volume, &staging(1), Mode::Ext4).await.unwrap();
        let user = User::start(staging(1).join("data"));
        let shell = shell_of(&driver).unwrap();
        let suspended = || devices().iter().any(|(_, suspended)| *suspended);
        let mut size = 16 * MIB;
        // Each time lvm is held one call later, until it is when it has suspended the volume.
        let (call, holder) = loop {
            size += 4 * MIB;
            let number = usize::try_from(size / MIB / 4 - 4).unwrap();
            let holder = Tracer::attach(shell, Act::Hold, number).await;
            let (mut client, volume) = (driver.client().await, volume.clone());
            let call = tokio::spawn(async move { client.expand(&volume, size, Mode::Ext4).await });
            until("lvm comes to that call", async || holder.calls() + 1 >= number).await;
            if suspended() {
                break (call, holder);
            }
            drop(holder);
            call.await.unwrap().unwrap();
        };
        driver.kill();
        assert!(call.await.unwrap().is_err());
        let driver = Driver::start().await;
        assert!(suspended(), "only the lvm that holds the lock may resume it");
        drop(holder);
        user.goes_on("when lvm does").await;
        let mut client = driver.client().await;
        assert_eq!(repeat(async || client.expand(&volume, size, Mode::Ext4).await).await, size);
        holds_volumes([1], size);
        assert_eq!(file_system_size(&device(&name(1))), size);
        user.stop();
    });
}
