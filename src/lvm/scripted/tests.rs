use std::time::Duration;

use super::*;
use crate::lvm::{Health, Reply, sightings};
use crate::types::{Extents, LvName, PeRange};

#[path = "contract.rs"]
mod contract;

const DISKS: [(&str, u64); 2] = [("/dev/sda", 10), ("/dev/sdb", 10)];

fn name(name: &str) -> LvName {
    name.parse().unwrap()
}

fn create(lv: &str, extents: u64) -> Command {
    Command::Create { name: name(lv), extents: Extents::new(extents), tags: vec!["q.s=b".to_owned()] }
}

fn devices() -> Vec<PathBuf> {
    DISKS.iter().map(|(device, _)| PathBuf::from(device)).collect()
}

fn machine() -> (Arc<ScriptedBackend>, Arc<dyn Engine>, VgName) {
    let lvm = ScriptedBackend::new();
    lvm.add_vg("vg0", &DISKS);
    let vg: VgName = "vg0".parse().unwrap();
    let engine = lvm.open(&vg, &devices());
    (lvm, engine, vg)
}

#[tokio::test]
async fn commands_change_the_group_and_its_fingerprint() {
    let (lvm, engine, vg) = machine();
    let before = lvm.fingerprint(&devices()).await.unwrap();
    assert!(engine.run(&vg, &create("a", 12)).await.unwrap().success);
    assert_ne!(lvm.fingerprint(&devices()).await.unwrap(), before);
    let reply = engine.run(&vg, &Command::Volume(name("a"))).await.unwrap();
    let row = reply.lvs[0].vg.clone().unwrap();
    assert_eq!((row.seqno, row.free), (2, Extents::new(8)));
    let segments = engine.run(&vg, &Command::Segments(name("a"))).await.unwrap().segments;
    let ranges: Vec<String> = segments.iter().flat_map(|s| &s.ranges).map(ToString::to_string).collect();
    assert_eq!(ranges, ["/dev/sda:0-9", "/dev/sdb:0-1"]);
    let from = vec![PeRange { device: "/dev/sdb".to_owned(), first: 5, last: 6 }];
    let extend = Command::Extend { name: name("a"), to: Extents::new(14), from };
    assert!(engine.run(&vg, &extend).await.unwrap().success);
    assert!(!engine.run(&vg, &extend).await.unwrap().success);
    assert_eq!(lvm.edit("vg0", |vg| vg.lv("a").pieces.len()), 3);
}

#[tokio::test]
async fn an_engine_sees_only_its_own_disks() {
    let (lvm, _, vg) = machine();
    let engine = lvm.open(&vg, &devices()[..1]);
    assert_eq!(engine.run(&vg, &Command::Group).await.unwrap().vgs[0].missing_pvs, 1);
    assert!(!engine.run(&vg, &create("a", 1)).await.unwrap().success);
    lvm.edit("vg0", |vg| vg.pv("/dev/sda").present = false);
    assert!(!engine.run(&vg, &Command::Group).await.unwrap().success);
    assert!(lvm.fingerprint(&devices()).await.is_err());
    let seen = sightings(&lvm.look().await.unwrap(), lvm.system_id());
    assert!(matches!(seen[0].health, Health::Partial(_)));
}

#[tokio::test]
async fn faults_come_in_their_turn() {
    let (lvm, engine, vg) = machine();
    lvm.on_change(1, Fault::Refuse);
    lvm.on_change(2, Fault::LostBefore);
    lvm.on_change(3, Fault::LostAfter);
    lvm.on_report(1, Fault::Unreadable);
    assert!(!engine.run(&vg, &create("a", 1)).await.unwrap().success);
    assert!(engine.run(&vg, &Command::Group).await.is_err());
    assert!(matches!(engine.run(&vg, &create("b", 1)).await, Err(EngineError::Lost { .. })));
    assert!(matches!(engine.run(&vg, &create("c", 1)).await, Err(EngineError::Lost { .. })));
    assert!(engine.run(&vg, &create("d", 1)).await.unwrap().success);
    assert_eq!(lvm.edit("vg0", |vg| vg.lvs.len()), 2);
    assert_eq!((lvm.changes().len(), lvm.take_events().len(), lvm.changes().len()), (4, 6, 0));
}

#[tokio::test]
async fn a_held_change_goes_on_without_its_caller() {
    let (lvm, engine, vg) = machine();
    let held = lvm.hold_change(1);
    let command = create("a", 1);
    let patience = Duration::from_millis(20);
    assert!(tokio::time::timeout(patience, engine.run(&vg, &command)).await.is_err());
    held.reached().await;
    held.release();
    assert!(engine.run(&vg, &create("b", 1)).await.unwrap().success);
    assert_eq!(lvm.edit("vg0", |vg| vg.lvs.len()), 2);
}

#[tokio::test]
#[should_panic(expected = "two changes to vg0 at once")]
async fn two_changes_at_once_are_a_bug() {
    let (lvm, engine, vg) = machine();
    let held = lvm.hold_change(1);
    let other = lvm.open(&vg, &devices());
    let (first, second) = (create("a", 1), create("b", 1));
    tokio::select! {
        _ = engine.run(&vg, &first) => {}
        () = async { held.reached().await; other.run(&vg, &second).await.unwrap(); } => {}
    }
}

#[tokio::test]
async fn a_power_cut_takes_what_was_not_flushed() {
    let (lvm, engine, vg) = machine();
    assert!(engine.run(&vg, &create("a", 1)).await.unwrap().success);
    lvm.flush(&devices()).await.unwrap();
    assert!(engine.run(&vg, &create("b", 1)).await.unwrap().success);
    lvm.cut_power();
    let lvs = engine.run(&vg, &Command::Volumes).await.unwrap().lvs;
    assert_eq!(lvs.iter().map(|lv| (lv.name.as_str(), lv.active)).collect::<Vec<_>>(), [("a", false)]);
    assert!(engine.run(&vg, &Command::Activate(name("a"))).await.unwrap().success);
    assert!(lvm.edit("vg0", |vg| vg.lv("a").active));
}

#[tokio::test]
async fn the_machine_itself_can_fail() {
    let (lvm, _, vg) = machine();
    lvm.fail_looks(true);
    lvm.fail_flushes(true);
    lvm.fail_backups(true);
    assert!(lvm.look().await.is_err() && lvm.flush(&devices()).await.is_err());
    assert!(lvm.back_up(&vg, &devices()).await.is_err());
    assert_eq!(lvm.count(|event| matches!(event, Event::Look | Event::BackUp(_))), 2);
}

#[tokio::test]
async fn groups_can_be_in_every_state() {
    let lvm = ScriptedBackend::with_system_id("here");
    lvm.add_vg("vg0", &DISKS);
    lvm.add_vg("vg1", &[("/dev/sdc", 5)]);
    let health = async |vg: &str| {
        let seen = sightings(&lvm.look().await.unwrap(), lvm.system_id());
        seen.into_iter().find(|sighting| sighting.vg.name.as_str() == vg).unwrap().health
    };
    assert_eq!(health("vg0").await, Health::Healthy);
    lvm.edit("vg0", |vg| vg.pv("/dev/sda").copy = Some("/dev/sdx".into()));
    assert!(matches!(health("vg0").await, Health::DuplicatePv(_)));
    lvm.commit("vg1", |vg| vg.system_id = Some("there".to_owned()));
    assert_eq!(health("vg1").await, Health::Foreign("there".to_owned()));
    lvm.commit("vg1", |vg| vg.system_id = Some("here".to_owned()));
    lvm.commit("vg1", |vg| vg.exported = true);
    assert_eq!(health("vg1").await, Health::Exported);
    lvm.commit("vg1", |vg| vg.name = "vg0".to_owned());
    assert!(matches!(health("vg0").await, Health::SameName(_)));
}

#[tokio::test]
async fn the_contract_with_the_real_lvm_is_kept() {
    use contract::{EXTENTS, Step, compare, play};
    let lvm = ScriptedBackend::new();
    lvm.add_vg("vg0", &[("/dev/sda", EXTENTS), ("/dev/sdb", EXTENTS)]);
    let vg: VgName = "vg0".parse().unwrap();
    let act = |step: &Step| {
        lvm.edit("vg0", |vg| match step {
            Step::Run(_) => {}
            Step::Open(lv) => vg.lv(lv).open = true,
            Step::CloseAll => vg.lvs.iter_mut().for_each(|lv| lv.open = false),
            Step::Suspend(lv) => vg.lv(lv).suspended = true,
            Step::Deactivate(lv) => vg.lv(lv).active = false,
        })
    };
    let engine = lvm.open(&vg, &devices());
    let story = play(&*engine, &vg, ["/dev/sda", "/dev/sdb"], act).await;
    compare(&story);
}
