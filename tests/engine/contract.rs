//! The real LVM and the one in memory keep the same contract.

use std::cell::RefCell;
use std::fs::File;

use quarry::lvm::{Command, Engine, EngineKind, LocalOptions, Reply};
use quarry::types::{Extents, LvName, PeRange, VgName};

use super::support::{on_disks, sh};

#[path = "../../src/lvm/scripted/contract.rs"]
mod story;

use story::{EXTENTS, Step, compare, play};

fn keeps_the_contract(kind: EngineKind) {
    on_disks(2, async |bench| {
        let disks = [bench.devices[0].display().to_string(), bench.devices[1].display().to_string()];
        assert_eq!(sh("vgs --noheadings -o vg_extent_count vg0").parse::<u64>().unwrap(), 2 * EXTENTS);
        let bench = bench.again(LocalOptions { kind, ..LocalOptions::default() }).await;
        let open = RefCell::new(None);
        let act = |step: &Step| match step {
            Step::Run(_) => {}
            Step::Open(lv) => drop(open.replace(Some(File::open(format!("/dev/vg0/{lv}")).unwrap()))),
            Step::CloseAll => drop(open.take()),
            Step::Suspend(lv) => drop(sh(&format!("dmsetup suspend vg0-{lv}"))),
            Step::Deactivate(lv) => drop(sh(&format!("lvchange -an vg0/{lv}"))),
        };
        let story = play(&*bench.engine, &bench.vg, [&disks[0], &disks[1]], act).await;
        bench.end().await;
        compare(&story);
    });
}

#[test]
fn a_shell_keeps_the_contract() {
    keeps_the_contract(EngineKind::Shell);
}

#[test]
fn processes_keep_the_contract() {
    keeps_the_contract(EngineKind::Process);
}
