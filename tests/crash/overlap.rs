//! Two drivers on one machine, as during a roll-out.

use std::time::Duration;

use nix::sys::signal::Signal;
use tonic::Code;

use super::bench::{
    device, dirty_free_space, fill, free, holds_exactly, holds_only, lvs, repeat, size_of_staged,
};
use super::mkfs::{count_mkfs, mkfs_runs};
use super::strace::{send, shell_of};
use super::{holds_volumes, id, name, staging};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, make_group, mounts_at, refused, until};

const SIZE: u64 = 16 * MIB;

/// How often something is tried whose outcome depends on who comes first.
const ROUNDS: usize = 6;

/// How long a caller waits that is not to wait to the end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Boots a machine with two drivers on the group [`VG`].
fn boot(body: impl AsyncFnOnce(Client, Client)) {
    lab::Machine::new().disk("512M").boot(|| {
        make_group(VG, &lab::disks());
        count_mkfs();
        driver::run(async {
            dirty_free_space();
            let (one, two) = (Driver::start().await, Driver::start_beside("/run/quarry/other.sock").await);
            body(one.client().await, two.client().await).await;
            assert!(one.stop().success() && two.stop().success());
        });
    });
}

/// Creates a volume through both at the same time, and gives its id.
async fn create(one: &mut Client, two: &mut Client, number: usize, mode: Mode) -> String {
    let name = name(number);
    let (first, second) = tokio::join!(
        repeat(async || one.create(&name, SIZE, mode).await),
        repeat(async || two.create(&name, SIZE, mode).await)
    );
    assert_eq!(first.volume_id, second.volume_id);
    first.volume_id
}

/// Expands and then deletes the volumes up to this one, through both at the same time.
async fn grow_and_delete(one: &mut Client, two: &mut Client, last: usize, mode: Mode) {
    for number in 1..=last {
        let (id, staging) = (id(number), staging(number));
        let sizes = tokio::join!(
            repeat(async || one.expand(&id, 2 * SIZE, mode).await),
            repeat(async || two.expand(&id, 2 * SIZE, mode).await)
        );
        assert_eq!(sizes, (2 * SIZE, 2 * SIZE));
        match mode {
            Mode::Block => {
                holds_only(&device(&name(number)), 0, SIZE, 0x55);
                holds_only(&device(&name(number)), SIZE, 2 * SIZE, 0);
            }
            _ => assert_eq!(size_of_staged(number, mode), 2 * SIZE),
        }
        one.unstage(&id, &staging).await.unwrap();
        tokio::join!(repeat(async || one.delete(&id).await), repeat(async || two.delete(&id).await));
        holds_volumes(number + 1..=last, SIZE);
    }
    holds_exactly([]);
    assert_eq!(one.capacity().await.unwrap().0, free());
    assert_eq!(two.capacity().await.unwrap().0, free());
}

#[test]
fn two_drivers_format_and_mount_a_volume_once_between_them() {
    boot(async |mut one, mut two| {
        for number in 1..=ROUNDS {
            let id = create(&mut one, &mut two, number, Mode::Ext4).await;
            let staging = staging(number);
            tokio::join!(
                repeat(async || one.stage(&id, &staging, Mode::Ext4).await),
                repeat(async || two.stage(&id, &staging, Mode::Ext4).await)
            );
            assert_eq!((mkfs_runs(), mounts_at(&staging)), (number, 1));
            holds_volumes(1..=number, SIZE);
        }
        grow_and_delete(&mut one, &mut two, ROUNDS, Mode::Ext4).await;
    });
}

#[test]
fn two_drivers_zero_a_volume_before_its_user_writes_and_never_after() {
    boot(async |mut one, mut two| {
        for number in 1..=ROUNDS {
            let id = create(&mut one, &mut two, number, Mode::Block).await;
            let (staging, device) = (staging(number), device(&name(number)));
            let first = async {
                repeat(async || one.stage(&id, &staging, Mode::Block).await).await;
                holds_only(&device, 0, SIZE, 0);
                fill(&device, 0, SIZE, 0x55);
            };
            tokio::join!(first, repeat(async || two.stage(&id, &staging, Mode::Block).await));
            holds_only(&device, 0, SIZE, 0x55);
            holds_volumes(1..=number, SIZE);
        }
        grow_and_delete(&mut one, &mut two, ROUNDS, Mode::Block).await;
    });
}

/// While a change is under way a driver knows the group as it was before.
#[test]
fn a_volume_that_the_other_driver_has_just_made_is_not_taken_for_gone() {
    lab::Machine::new().disk("512M").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let (one, two) = (Driver::start().await, Driver::start_beside("/run/quarry/other.sock").await);
            let (mut client, mut other) = (one.client().await, two.client().await);
            client.capacity().await.unwrap();
            let shell = shell_of(&one).unwrap();
            send(shell, Signal::SIGSTOP);
            let mut creator = client.clone();
            let creation = tokio::spawn(async move { creator.create(&name(1), SIZE, Mode::Block).await });
            one.log().soon(&["running", "lvcreate"]).await;

            other.create(&name(2), SIZE, Mode::Block).await.unwrap();
            until("it is prepared", async || lvs().get(&name(2)).is_some_and(|lv| lv.state == "f")).await;
            refused(client.within(PATIENCE).delete(&id(2)).await, Code::Aborted, "the operation goes on");
            send(shell, Signal::SIGCONT);
            creation.await.unwrap().unwrap();
            repeat(async || client.delete(&id(2)).await).await;
            assert_eq!(lvs().into_keys().collect::<Vec<_>>(), [name(1)]);
        });
    });
}
