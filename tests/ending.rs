//! How the driver ends: soon, whatever its callers do, and with nothing left to warn of.

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::driver::{self, Client, Driver, MIB, Mode, VG, make_group};

fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(body());
    });
}

#[test]
fn ctrl_c_ends_it_as_sigterm_does() {
    boot(async || {
        let driver = Driver::start().await;
        let log = driver.log().clone();
        driver.client().await.create("pvc-a", 64 * MIB, Mode::Ext4).await.unwrap();
        kill(Pid::from_raw(driver.pid().try_into().unwrap()), Signal::SIGINT).unwrap();
        assert!(driver.wait().success());
        assert!(log.text().contains("asked to stop signal=\"SIGINT\""), "{}", log.text());
        assert!(log.text().trim_end().ends_with("stopped"), "{}", log.text());
    });
}

#[test]
fn a_preparation_that_a_delete_ends_is_no_warning() {
    boot(async || {
        let driver = Driver::start().await;
        let log = driver.log().clone();
        let mut client = driver.client().await;
        let id = client.create("pvc-a", 900 * MIB, Mode::Block).await.unwrap().volume_id;
        client.delete(&id).await.unwrap();
        assert!(driver.stop().success());
        assert!(!log.text().contains("WARN"), "{}", log.text());
        assert!(log.text().contains(&format!("why=\"volume {id} is being deleted\"")), "{}", log.text());
    });
}

#[test]
fn a_caller_that_is_frozen_does_not_hold_it_up() {
    boot(async || {
        let driver = Driver::start().await;
        let log = driver.log().clone();
        // Nothing runs on this runtime unless it is waited for, so its connection stays and says nothing.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let socket = driver.socket().to_owned();
        let connect = move || {
            let client = runtime.block_on(async {
                let mut client = Client::connect(&socket).await.unwrap();
                client.capacity().await.unwrap();
                client
            });
            (runtime, client)
        };
        // Dropping it here would wait for it.
        let _frozen = ManuallyDrop::new(std::thread::spawn(connect).join().unwrap());
        let started = Instant::now();
        assert!(driver.stop().success());
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}: {}", started.elapsed(), log.text());
        assert!(!log.text().contains("WARN"), "{}", log.text());
    });
}
