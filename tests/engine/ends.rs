//! Callers, engines and drivers that go away in the middle of a change.

use std::time::Duration;

use nix::sys::signal::Signal;
use quarry::lvm::{EngineKind, LocalOptions};

use super::support::{
    Bench, create, ended, lock, lvms, on_disks, run, sh, shell, signal, until, waits_for_lock,
};

#[test]
fn a_change_goes_on_when_its_caller_and_its_engine_are_gone() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        on_disks(1, async |bench| {
            let bench = bench.again(LocalOptions { kind, ..LocalOptions::default() }).await;
            let held = lock();
            let command = create("a", 1);
            tokio::select! {
                reply = bench.ask(&command) => panic!("the change did not wait: {reply:?}"),
                () = until("the change waits", || lvms().into_iter().any(waits_for_lock)) => {}
            }
            let Bench { engine, backend, tracker, .. } = bench;
            drop((engine, backend));
            assert!(tokio::time::timeout(Duration::from_millis(300), tracker.wait()).await.is_err());
            drop(held);
            ended(&tracker).await;
            assert_eq!(sh("lvs --noheadings -o lv_name,lv_active vg0"), "a    active");
        });
    }
}

/// Run as a process of its own by the next test.
#[test]
#[ignore = "it is a part of another test"]
fn a_driver_that_will_be_killed() {
    if let Some(doomed) = std::env::var_os("DOOMED") {
        run(async {
            let kind = if doomed == "Shell" { EngineKind::Shell } else { EngineKind::Process };
            let bench = Bench::start(LocalOptions { kind, ..LocalOptions::default() }).await;
            bench.must(create("a", 1)).await;
        });
    }
}

#[test]
fn lvm_finishes_when_the_driver_is_killed() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        on_disks(1, async |bench| {
            bench.end().await;
            let held = lock();
            let own = std::env::current_exe().unwrap();
            let test = "engine::ends::a_driver_that_will_be_killed";
            let line = format!("exec {} --exact {test} --ignored --nocapture", own.display());
            let mut driver = shell(&line).env("DOOMED", format!("{kind:?}")).spawn().unwrap();
            until("the change waits", || lvms().into_iter().any(waits_for_lock)).await;
            signal(driver.id(), Signal::SIGKILL);
            driver.wait().unwrap();
            assert_eq!(lvms().len(), 1);
            drop(held);
            until("lvm has ended", || lvms().is_empty()).await;
            assert_eq!(sh("lvs --noheadings -o lv_name,lv_active vg0"), "a    active");
        });
    }
}
