//! What the driver costs, measured beside stock LVM in one guest: `make bench`.
//!
//! ```text
//!   rounds   create, expand, delete: the driver and stock processes in turn, in one volume group
//!   publish  stage and publish, beside mkfs and mount
//!   crowd    creates per second, by several callers
//!   idle     what the driver does and holds while nobody wants anything
//!   disk     fio on published volumes, beside bare LVs
//!
//!   ours, stock    the two sides       group    the volume group, and its metadata
//!   samples        percentiles         report   the table, and the JSON
//! ```
//!
//! `scale` is a measurement of its own, on the host: a controller with very many nodes.
//!
//! Both sides are timed by this program: ours from the call to the answer over the driver's socket, stock from the
//! start of the process to its exit. Nothing here fails because it is slow.

mod crowd;
mod disk;

mod group;
mod idle;
mod ours;
mod processes;
mod publish;
mod report;
mod rounds;
mod samples;
mod scale;
mod stock;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::Machine;

use self::ours::Ours;
use self::report::Report;
use crate::driver;
use crate::engine::fill;

/// How many samples of each thing are taken, where this variable does not say otherwise: for those who work on
/// the bench itself.
const SAMPLES: (&str, usize) = ("QUARRY_BENCH_SAMPLES", 100);

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

#[test]
#[ignore = "it measures, and takes up to two hours: make bench"]
fn against_stock_lvm() {
    let folder = target().join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let json = target().join("bench.json");
    // What an earlier run has left is not this one's.
    if !lab::is_guest() && json.exists() {
        std::fs::remove_file(&json).unwrap();
    }
    let shown = (!lab::is_guest()).then(|| report::Shown::begin(&folder));
    let machine = Machine::new().disk("24G").memory("2G").limit(LIMIT).share(&folder);
    machine.boot(|| driver::run(measure(Report::begin(&folder))));
    drop(shown);
    std::fs::copy(folder.join(report::JSON), json).unwrap();
}

/// The folder that cargo builds in.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

async fn measure(mut report: Report) {
    let samples = std::env::var(SAMPLES.0).map_or(SAMPLES.1, |text| text.parse().unwrap());
    group::make(&[]);
    let empty = group::metadata_free();
    let ours = Ours::start("info").await;
    report.note(&format!("a process that does nothing (/bin/true): {}", stock::empty_process(samples)));
    report.note(&format!("a call that does nothing (Probe): {}", ours.empty_call(samples).await));
    rounds::measure(&ours, &mut report, 0, samples).await;
    publish::measure(&ours, &mut report, samples).await;
    for callers in [1, 4, 16] {
        crowd::measure(&ours, &mut report, callers, samples).await;
    }
    disk::measure(&ours, &mut report, samples).await;
    fill(100).await;
    report.note(&group::metadata(empty, group::metadata_free(), 100));
    rounds::measure(&ours, &mut report, 100, samples).await;
    idle::memory(&ours, &mut report);
    ours.stop();
    idle::commands(&mut report).await;

    group::make(&["--metadatasize", "16m"]);
    fill(1000).await;
    let ours = Ours::start("info").await;
    rounds::measure(&ours, &mut report, 1000, samples).await;
    report.note(&format!("with 1000 LVs: {}", idle::Memory::of(&ours)));
    ours.stop();
    report.end();
}
