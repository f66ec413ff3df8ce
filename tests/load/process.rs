//! The driver's end: by itself, as when it crashes, or with all that it has started, as when its container
//! is killed.

use std::collections::BTreeMap;

use lab::Dice;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::driver::Driver;
use crate::driver::processes::{parent_of, pids};
use crate::wishes;

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
                let _ = kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL);
            }
        }
    }
}

/// The processes that this one has started, and those that they have.
fn descendants(pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for child in pids() {
        children.entry(parent_of(child).unwrap_or_default()).or_default().push(child);
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}
