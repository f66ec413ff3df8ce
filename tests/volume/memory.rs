//! What many calls leave behind in the driver's memory: nothing.

use super::support::with_driver;
use crate::driver::{Driver, Mode, VG, Volume};

/// How many callers there are at once, and how often each makes each call in one round.
const CALLERS: usize = 8;
const TIMES: usize = 150;

/// The driver's anonymous resident memory, in KiB (proc_pid_status(5), `RssAnon`).
fn anonymous(driver: &Driver) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", driver.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Calls of kinds that the kubelet and the sidecars make all the time.
async fn round(volumes: &[Volume]) {
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let volume = volumes[number % volumes.len()].clone();
            tokio::spawn(async move {
                for time in 0..TIMES {
                    let mut client = volume.client();
                    volume.stats().await.unwrap();
                    client.capacity_in(VG).await.unwrap();
                    client.delete(&format!("{}-{number}-{time}", volume.id)).await.unwrap();
                    client
                        .create_in("none", &format!("pvc-{number}-{time}"), 1, volume.mode)
                        .await
                        .unwrap_err();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// The calls of one round.
const CALLS: u64 = (CALLERS * TIMES * 4) as u64;

/// The least that glibc's heap gives, in bytes: what a call leaves that leaves anything.
const LEAST: u64 = 32;

/// How many times two rounds are made until they leave less: the heap finds its size only after thousands of calls.
const SETTLING: usize = 5;

#[test]
fn thousands_of_calls_leave_nothing_in_memory() {
    with_driver(async |driver, client| {
        let volumes = [
            Volume::in_use(&client, "pvc-fs", Mode::Ext4).await,
            Volume::in_use(&client, "pvc-raw", Mode::Block).await,
        ];
        // Threads are started and their memory is touched for the first time.
        round(&volumes).await;
        let mut held = vec![anonymous(&driver)];
        for settled in 0..SETTLING {
            for _ in 0..2 {
                round(&volumes).await;
            }
            held.push(anonymous(&driver));
            if held[settled + 1] < held[settled] + 2 * CALLS * LEAST / 1024 {
                return;
            }
        }
        panic!("KiB after every {} calls: {held:?}", 2 * CALLS);
    });
}
