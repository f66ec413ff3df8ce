//! The power of the machine is cut at any time, whatever its callers are doing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lab::Dice;

use super::check::check;
use super::kills::{clear, is_a_load};
use super::ledger::Ledger;
use super::shift::Shift;
use crate::crash::bench;
use crate::driver::{self, Driver, VG, make_group, report};
use crate::wishes;

/// Where the guests find the folder of the ledger, which outlives them.
const MEMORY: &str = "QUARRY_LOAD_MEMORY";

/// How many volumes there may be: few, so that much is done to each.
const FEW: u64 = 24;

/// How long the callers work until the power is cut, in milliseconds.
const LIFE: std::ops::Range<u64> = 200..5000;

/// How often something is looked at that nobody can wait for.
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn whenever_the_power_is_cut_nothing_answered_is_lost_and_nothing_leaks() {
    let fresh = tempfile::tempdir().unwrap();
    let memory = std::env::var_os(MEMORY).map_or_else(|| fresh.path().to_owned(), PathBuf::from);
    let machine = wishes::machine("cuts").disk("1G").disk("1G").share(&memory).env(MEMORY, &memory);
    machine.boot(|| make_group(VG, &lab::disks()));
    for cut in 1..=wishes::cuts() {
        machine.boot_until_power_cut(|| driver::run(live(&memory, wishes::seed().wrapping_add(cut))));
    }
    machine.boot(|| driver::run(end(&memory)));
}

/// Holds that all is well after the last cut, and lets callers work until the next. The first cut waits
/// until something has been done.
async fn live(memory: &Path, seed: u64) {
    let (ledger, driver, vg) = begin(memory).await;
    let shift = Shift::begin(&ledger, &vg, FEW, seed);
    shift.call(&driver).await;
    let life = Dice::new(seed, 0).time(LIFE);
    // From a thread of its own: it must not wait until a task has time for it.
    let books = Arc::clone(&ledger);
    let cut = std::thread::spawn(move || {
        std::thread::sleep(life);
        while !is_a_load(&books) {
            std::thread::sleep(PAUSE);
        }
        lab::power_cut();
    });
    cutting(shift, cut).await;
}

/// Fails as soon as a caller has found something wrong, and else ends with the machine.
async fn cutting(mut shift: Shift, cut: std::thread::JoinHandle<()>) {
    while !cut.is_finished() {
        shift.holds();
        tokio::time::sleep(PAUSE).await;
    }
}

/// Holds that all is well after the last cut, and that all volumes can be used and removed.
async fn end(memory: &Path) {
    let (ledger, driver, vg) = begin(memory).await;
    clear(&ledger, &driver.client().await, &vg).await;
    check(&ledger, &driver, &vg).await;
    assert_eq!(bench::lvs().len(), 0);
    wishes::say(&format!("{:?}", ledger.done()));
}

/// Opens the ledger after a power cut, and holds that the machine is as it says.
async fn begin(memory: &Path) -> (Arc<Ledger>, Driver, String) {
    let ledger = Arc::new(Ledger::open(&memory.join("ledger")));
    ledger.power_cut();
    let (driver, vg) = (Driver::start().await, report("vgs", "vg_uuid", VG).remove(0));
    check(&ledger, &driver, &vg).await;
    (ledger, driver, vg)
}
