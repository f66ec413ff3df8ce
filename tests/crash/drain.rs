//! SIGTERM in the middle of work: what callers wait for is finished, what nobody waits for is left to the
//! next driver.

use std::path::Path;

use nix::sys::signal::Signal;
use tonic::Code;

use super::bench::{DIRT, device, holds_only, lvs, repeat};
use super::mkfs::{mkfs_runs, release_mkfs};
use super::slow::{LARGE, SIZE, boot, byte_at, create_half_zeroed, create_held, speed_up, stage, waits};
use super::strace::{send, shell_of};
use super::{holds_volumes, id, name, staging};
use crate::driver::{Driver, MIB, Mode, lock_group, until, waits_for_lock};

/// Asks the driver to end, and returns when it takes no more calls.
async fn ask_to_end(driver: &Driver) {
    send(driver.pid(), Signal::SIGTERM);
    until("no new call is taken", async || !Path::new(driver.socket()).exists()).await;
}

#[test]
fn a_create_in_flight_is_answered_and_its_volume_prepared_by_the_next_driver() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        client.capacity().await.unwrap();
        let (held, shell) = (lock_group(), shell_of(&driver).unwrap());
        let mut creator = client.clone();
        let call = tokio::spawn(async move { creator.create(&name(1), SIZE, Mode::Ext4).await });
        until("lvcreate waits for the lock", async || waits_for_lock(shell)).await;
        ask_to_end(&driver).await;
        drop(held);
        assert!(call.await.unwrap().unwrap().volume_id.ends_with(&name(1)));
        assert!(driver.wait().success());
        let driver = Driver::start().await;
        until("the volume is prepared, unasked", async || lvs()[&name(1)].state == "f").await;
        driver.client().await.stage(&id(1), &staging(1), Mode::Ext4).await.unwrap();
        assert_eq!(mkfs_runs(), 1);
        holds_volumes([1], SIZE);
    });
}

#[test]
fn zeroing_stops_and_whoever_waits_for_it_comes_again_to_the_next_driver() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        create_half_zeroed(&mut client).await;
        let call = tokio::spawn(stage(&client, Mode::Block));
        assert!(driver.stop().success());
        assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
        assert_eq!(byte_at(&device(&name(1)), LARGE - MIB), Some(DIRT), "it went on to the end");
        assert_eq!(lvs()[&name(1)].state, "b");
        speed_up();
        let driver = Driver::start().await;
        until("the volume is prepared, unasked", async || lvs()[&name(1)].state == "f").await;
        let client = driver.client().await;
        repeat(async || stage(&client, Mode::Block).await).await;
        holds_only(&device(&name(1)), 0, LARGE, 0);
    });
}

#[test]
fn a_mkfs_is_waited_for() {
    boot(async || {
        let mut driver = Driver::start().await;
        let mut client = driver.client().await;
        create_held(&mut client, Mode::Ext4).await;
        let call = waits(stage(&client, Mode::Ext4)).await;
        ask_to_end(&driver).await;
        assert!(!driver.has_ended());
        release_mkfs();
        call.await.unwrap().unwrap();
        assert!(driver.wait().success());
        assert_eq!(mkfs_runs(), 1);
        holds_volumes([1], SIZE);
    });
}
