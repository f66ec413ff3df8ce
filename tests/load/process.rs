//! The driver's end: by itself, as when it crashes, or with all that it has started, as when its container
//! is killed.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::dice::Dice;
use super::wishes;
use crate::driver::Driver;

/// How a driver ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// It is asked to, and finishes what it has begun.
    Asked,
    /// It is killed; the programs that it has started go on.
    Killed,
    /// It is killed, and they are too.
    KilledWithAll,
}

/// Ends the driver, mostly with no warning.
pub(super) fn end(driver: Driver, dice: &mut Dice) {
    let end = dice.pick(&[End::Asked, End::Killed, End::Killed, End::KilledWithAll, End::KilledWithAll]);
    wishes::say(&format!("the driver ends: {end:?}"));
    match end {
        End::Asked => assert!(driver.stop().success()),
        End::Killed => driver.kill(),
        End::KilledWithAll => {
            let all = descendants(driver.pid());
            driver.kill();
            for pid in all {
                // It may have ended by itself.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

/// The processes that this one has started, and those that they have.
fn descendants(pid: u32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Ok(child) = entry.unwrap().file_name().to_string_lossy().parse() else { continue };
        children.entry(parent(child)).or_default().push(child);
    }
    let mut found = vec![i32::try_from(pid).unwrap()];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}

/// The parent of a process; 0 of one that is gone.
fn parent(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}
