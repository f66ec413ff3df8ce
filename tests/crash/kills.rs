//! The driver is killed at every point of an operation, and the operation repeated by its successor.

use tonic::Status;

use super::bench::{device, dirty_free_space, fill, free, holds_exactly, holds_only, repeat};
use super::mkfs::{count_mkfs, mkfs_runs};
use super::trap::{self, End};
use super::{bench, child, holds_volumes, id, name, staging};
use crate::driver::{self, Client, MIB, Mode, VG, make_group, mounts_at, until};

/// The least number of points that any operation has: fewer mean that the trap does not work.
const FEWEST: usize = 4;

/// Boots a machine with the group [`VG`] on a disk of that size.
fn boot(size: &str, body: impl AsyncFnOnce()) {
    lab::Machine::new().disk(size).boot(|| {
        make_group(VG, &lab::disks());
        count_mkfs();
        driver::run(body());
    });
}

/// Does the operation number 1, 2, 3 and so on. In each the driver is killed one point later than in the
/// one before, and its successor is asked to do the same; until one operation gets through without a
/// kill. Gives the number of operations.
async fn kill_at_every_point(
    mut operation: impl AsyncFnMut(&mut Client, usize) -> Result<(), Status>,
    mut check: impl AsyncFnMut(&mut Client, usize),
) -> usize {
    let mut driver = child::start().await;
    for number in 1.. {
        let mut client = driver.client().await;
        // What the driver does at its start is over when this is answered, and does not count.
        client.capacity().await.unwrap();
        trap::set(End::Kill, number);
        let outcome = operation(&mut client, number).await;
        trap::disarm();
        let Err(status) = outcome else {
            check(&mut client, number).await;
            assert!(number > FEWEST, "the trap has not sprung:\n{}", trap::passed());
            return number;
        };
        until(&format!("the driver is dead after {status}"), async || driver.has_ended()).await;
        driver = child::start().await;
        let mut client = driver.client().await;
        repeat(async || operation(&mut client, number).await).await;
        check(&mut client, number).await;
    }
    unreachable!("an operation has an end")
}

/// Creates and stages a volume.
async fn create_and_stage(client: &mut Client, number: usize, size: u64, mode: Mode) -> Result<(), Status> {
    let id = client.create(&name(number), size, mode).await?.volume_id;
    client.stage(&id, &staging(number), mode).await
}

/// Deletes the volumes 1 to `last`, with a kill at every point of the first ones.
async fn delete_all(last: usize, size: u64) {
    let before = free();
    let deleted = kill_at_every_point(
        async |client, number| client.delete(&id(number)).await,
        async |client, number| {
            assert_eq!(client.capacity().await.unwrap().0, before + size * number as u64);
            holds_volumes(number + 1..=last, size);
        },
    )
    .await;
    assert!(deleted < last, "a deletion has more points than there are volumes");
}

#[test]
fn a_kill_at_any_point_of_create_prepare_stage_and_delete_leaks_and_loses_nothing() {
    for mode in Mode::FILE_SYSTEMS {
        lives_and_deaths(mode);
    }
}

fn lives_and_deaths(mode: Mode) {
    let size = mode.size();
    boot("16G", async || {
        let last = kill_at_every_point(
            async |client, number| create_and_stage(client, number, size, mode).await,
            async |_, number| {
                holds_volumes(1..=number, size);
                assert_eq!(mounts_at(&staging(number)), 1);
                assert_eq!(mkfs_runs(), number, "each volume is formatted once:\n{}", trap::passed());
                std::fs::write(staging(number).join("data"), name(number)).unwrap();
            },
        )
        .await;
        let driver = child::start().await;
        for number in 1..=last {
            assert_eq!(std::fs::read_to_string(staging(number).join("data")).unwrap(), name(number));
            driver.client().await.unstage(&id(number), &staging(number)).await.unwrap();
        }
        drop(driver);
        delete_all(last, size).await;
    });
}

#[test]
fn a_kill_at_any_point_of_create_and_delete_of_a_raw_volume_leaves_it_zero_and_leaks_nothing() {
    const SIZE: u64 = 4 * MIB;
    boot("256M", async || {
        dirty_free_space();
        let last = kill_at_every_point(
            async |client, number| create_and_stage(client, number, SIZE, Mode::Block).await,
            async |_, number| {
                holds_volumes(1..=number, SIZE);
                holds_only(&device(&name(number)), 0, SIZE, 0);
                fill(&device(&name(number)), 0, SIZE, 0x55);
            },
        )
        .await;
        for number in 1..=last {
            holds_only(&device(&name(number)), 0, SIZE, 0x55);
        }
        delete_all(last, SIZE).await;
    });
}

#[test]
fn a_kill_at_any_point_of_an_expansion_leaves_the_mounted_file_system_whole_and_grown() {
    for mode in Mode::FILE_SYSTEMS {
        growth_and_deaths(mode);
    }
}

fn growth_and_deaths(mode: Mode) {
    const STEP: u64 = 8 * MIB;
    let size_at_first = 2 * mode.size();
    boot("4G", async || {
        let driver = child::start().await;
        create_and_stage(&mut driver.client().await, 1, size_at_first, mode).await.unwrap();
        drop(driver);
        let file = staging(1).join("data");
        let data: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8).collect();
        std::fs::write(&file, &data).unwrap();
        let id = id(1);
        kill_at_every_point(
            async |client, number| {
                let size = size_at_first + STEP * number as u64;
                let answer = client.expand(&id, size, mode).await?;
                assert_eq!(answer, size);
                Ok(())
            },
            async |_, number| {
                let size = size_at_first + STEP * number as u64;
                holds_exactly([(name(1).as_str(), size, "u")]);
                assert_eq!(bench::size_of_staged(1, mode), size, "{}", trap::passed());
                assert_eq!(std::fs::read(&file).unwrap(), data);
                assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 1));
            },
        )
        .await;
    });
}

#[test]
fn a_kill_at_any_point_of_the_growth_of_a_raw_volume_shows_nobody_elses_bytes_and_loses_none() {
    const SIZE: u64 = 4 * MIB;
    boot("512M", async || {
        dirty_free_space();
        let driver = child::start().await;
        create_and_stage(&mut driver.client().await, 1, SIZE, Mode::Block).await.unwrap();
        drop(driver);
        let (id, device) = (id(1), device(&name(1)));
        holds_only(&device, 0, SIZE, 0);
        fill(&device, 0, SIZE, 0x55);
        // So that what is free is dirty whatever order LVM takes extents in.
        dirty_free_space();
        kill_at_every_point(
            async |client, number| {
                let size = SIZE + SIZE * number as u64;
                assert_eq!(client.expand(&id, size, Mode::Block).await?, size);
                Ok(())
            },
            async |_, number| {
                let size = SIZE + SIZE * number as u64;
                holds_exactly([(name(1).as_str(), size, "u")]);
                holds_only(&device, 0, size - SIZE, 0x55);
                holds_only(&device, size - SIZE, size, 0);
                fill(&device, size - SIZE, size, 0x55);
            },
        )
        .await;
    });
}
