//! Calls of every kind from many callers, and a driver that is killed under them again and again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::Dice;

use super::call::{Call, Outcome};
use super::caller::make;
use super::check::check;
use super::facts::Fact;
use super::ledger::Ledger;
use super::shift::Shift;
use super::slot::Slot;
use super::{SLOTS, process};
use crate::crash::bench;
use crate::driver::{self, Client, Driver, VG, Volume, make_group, report};
use crate::wishes;

/// How often a driver ends while the callers of one shift are at work.
const KILLS: u64 = 3;

/// Between two such ends, in milliseconds.
const PAUSE: std::ops::Range<u64> = 200..6000;

/// How long the volumes of one group may take to end well after a test.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn whatever_is_asked_of_a_driver_that_is_killed_all_the_time_nothing_answered_is_lost_and_nothing_leaks() {
    let length = wishes::length();
    let machine = wishes::machine("kills").disk("2G").disk("2G").limit(10 * length + PATIENCE);
    machine.boot(|| {
        make_group(VG, &lab::disks());
        driver::run(load(length));
    });
}

/// Loads the driver for at least that long.
async fn load(length: Duration) {
    let (ledger, vg) =
        (Arc::new(Ledger::open(Path::new("/run/ledger"))), report("vgs", "vg_uuid", VG).remove(0));
    let mut driver = Driver::start().await;
    let mut loaded = Duration::ZERO;
    for shift in 1.. {
        let begun = Instant::now();
        driver = one_shift(&ledger, &vg, driver, wishes::seed().wrapping_add(shift)).await;
        loaded += begun.elapsed();
        check(&ledger, &driver, &vg).await;
        if loaded >= length && is_a_load(&ledger) {
            break;
        }
    }
    wishes::say(&format!("{loaded:?}, {} volumes at the end, {:?}", ledger.living().len(), ledger.done()));
    clear(&ledger, &driver.client().await, &vg).await;
    check(&ledger, &driver, &vg).await;
    assert_eq!(bench::lvs().len(), 0);
}

/// Lets callers work while driver after driver ends under them, and gives the last one, which nobody asks
/// anything.
async fn one_shift(ledger: &Arc<Ledger>, vg: &str, mut driver: Driver, seed: u64) -> Driver {
    let mut dice = Dice::new(seed, 0);
    let mut shift = Shift::begin(ledger, vg, SLOTS as u64, seed);
    for kill in 1..=KILLS {
        shift.call(&driver).await;
        tokio::time::sleep(dice.time(PAUSE)).await;
        shift.holds();
        if kill == KILLS {
            // The last calls are cut off as well: what is begun now is never answered.
            shift.stop();
        }
        process::end(driver, &mut dice);
        shift.wait();
        driver = Driver::start().await;
    }
    shift.end().await;
    driver
}

/// Whether something was done at all: on a machine that has no time for it, a load lasts longer.
pub(super) fn is_a_load(ledger: &Ledger) -> bool {
    let done = ledger.done();
    ["Create", "Stage", "Publish", "Write", "Delete"].iter().all(|kind| done.contains_key(*kind))
}

/// Ends every volume as its users would, after a last look at what was written.
pub(super) async fn clear(ledger: &Ledger, client: &Client, vg: &str) {
    for slot in Slot::all() {
        let (volume, facts) = (slot.volume(client, vg), ledger.facts(slot));
        if facts.exists == Fact::No {
            continue;
        }
        let (written, published) = (!facts.content.is_empty(), facts.published.may_be(true));
        // Whoever is given a volume reads it.
        let look = [Call::Stage, Call::Publish].into_iter().filter(|_| written);
        let leave = [Call::Unpublish].into_iter().filter(|_| written || published);
        for call in look.chain(leave).chain([Call::Unstage, Call::Delete]) {
            until_done(ledger, slot, &volume, call).await;
        }
    }
}

/// Asks until it is done.
async fn until_done(ledger: &Ledger, slot: Slot, volume: &Volume, call: Call) {
    let end = Instant::now() + PATIENCE;
    loop {
        match make(ledger, slot, volume, call, false).await {
            Outcome::Done { .. } => return,
            Outcome::Open if Instant::now() < end => tokio::time::sleep(Duration::from_millis(20)).await,
            outcome => panic!("{call:?}: {outcome:?}\n{}", ledger.tale(slot)),
        }
    }
}
