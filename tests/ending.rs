//! How the driver ends: soon, whatever its callers do, and with nothing left to warn of.

use std::mem::ManuallyDrop;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::driver::{self, Client, Driver, MIB, Mode, VG, make_group};

/// Where the driver's log goes.
const LOG: &str = "/run/driver.log";

fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(body());
    });
}

/// A driver that keeps a log of its own.
async fn logging() -> Driver {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
    let log = std::fs::File::create(LOG).unwrap();
    command.args(["standalone", "--volume-group", VG]).stdout(Stdio::null()).stderr(log);
    Driver::launch(command).await
}

fn log() -> String {
    std::fs::read_to_string(LOG).unwrap()
}

#[test]
fn ctrl_c_ends_it_as_sigterm_does() {
    boot(async || {
        let driver = logging().await;
        driver.client().await.create("pvc-a", 64 * MIB, Mode::Ext4).await.unwrap();
        kill(Pid::from_raw(driver.pid().try_into().unwrap()), Signal::SIGINT).unwrap();
        assert!(driver.wait().success());
        assert!(log().contains("asked to stop signal=\"SIGINT\""), "{}", log());
        assert!(log().trim_end().ends_with("stopped"), "{}", log());
    });
}

#[test]
fn a_preparation_that_a_delete_ends_is_no_warning() {
    boot(async || {
        let driver = logging().await;
        let mut client = driver.client().await;
        let id = client.create("pvc-a", 900 * MIB, Mode::Block).await.unwrap().volume_id;
        client.delete(&id).await.unwrap();
        assert!(driver.stop().success());
        assert!(!log().contains("WARN"), "{}", log());
        assert!(log().contains(&format!("why=\"volume {id} is being deleted\"")), "{}", log());
    });
}

#[test]
fn a_caller_that_is_frozen_does_not_hold_it_up() {
    boot(async || {
        let driver = logging().await;
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
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}: {}", started.elapsed(), log());
        assert!(!log().contains("WARN"), "{}", log());
    });
}
