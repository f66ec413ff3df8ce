//! Whoever was just refused a volume finds in the states why, and no room for it.

mod several;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::super::{CreateRequest, Parts, VolumeError};
use super::*;
use crate::device::Dm;
use crate::exec::NoPrograms;
use crate::lvm::scripted::{Fault, Held, ScriptedBackend};
use crate::lvm::{Groups, Intent, Selection, Settings};
use crate::types::{CapacityRange, ClassParameters, CsiName, LvName, MakeOptions, VolumeMode};

/// No wait in a test takes longer than this.
const BOUND: Duration = Duration::from_secs(20);

struct Fixture {
    _dir: tempfile::TempDir,
    lvm: Arc<ScriptedBackend>,
    groups: Arc<Groups>,
    volumes: Arc<Volumes>,
}

/// One group of 100 extents of 4 MiB, of which 10 are kept.
async fn fixture(patience: Duration) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let lvm = ScriptedBackend::new();
    lvm.add_vg("vg0", &[("/dev/sda", 100)]);
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let settings = Settings {
        selections: vec![Selection { pattern: "vg*".parse().unwrap(), reserve: Bytes::mib(40) }],
        patience,
        backup_delay: BOUND,
    };
    let backend: Arc<ScriptedBackend> = Arc::clone(&lvm);
    let groups = Groups::new(backend, settings, tracker.clone(), stop.clone());
    groups.rescan().await.unwrap();
    let volumes = Volumes::new(Parts {
        groups: Arc::clone(&groups),
        programs: Arc::new(NoPrograms),
        dm: Dm::new(dir.path().join("nodes")),
        node: "n1".parse().unwrap(),
        lock_dir: dir.path().join("locks"),
        mount_dir: dir.path().join("mounts"),
        tracker,
        stop,
    });
    Fixture { _dir: dir, lvm, groups, volumes }
}

impl Fixture {
    async fn create(&self, name: &str, mib: u64) -> Result<(), VolumeError> {
        create(&self.volumes, name, mib).await
    }

    fn state(&self) -> GroupState {
        let [state] = self.volumes.states().try_into().expect("not one group");
        state
    }

    /// Waits for a state that is as it should be, going by the changes alone.
    async fn until(&self, what: &str, right: impl Fn(&GroupState) -> bool) -> GroupState {
        let mut changes = self.volumes.changes();
        tokio::time::timeout(BOUND, async {
            loop {
                changes.mark_unchanged();
                let state = self.state();
                if right(&state) {
                    return state;
                }
                changes.changed().await.unwrap();
            }
        })
        .await
        .unwrap_or_else(|_| panic!("not within {BOUND:?}: {what}"))
    }
}

async fn create(volumes: &Arc<Volumes>, name: &str, mib: u64) -> Result<(), VolumeError> {
    let request = CreateRequest {
        name: name.parse().unwrap(),
        range: CapacityRange { required: Bytes::mib(mib), limit: None },
        mode: VolumeMode::Block,
        make: MakeOptions::default(),
        parameters: ClassParameters::default(),
        requisite: Vec::new(),
        cluster: None,
    };
    volumes.create(&request).await.map(drop)
}

fn means_elsewhere(refused: &Result<(), VolumeError>) -> bool {
    matches!(refused, Err(VolumeError::NoPlace(_) | VolumeError::Unusable(_) | VolumeError::NoRoom { .. }))
}

#[tokio::test]
async fn what_is_read_and_made_is_seen_at_once_and_is_what_capacity_says() {
    let f = fixture(BOUND).await;
    assert!(f.state().trouble.is_some_and(|why| why.contains("not been read yet")));
    for (name, mib, left) in [("a", 100, 260), ("b", 60, 200)] {
        let changes = f.volumes.changes();
        f.create(name, mib).await.unwrap();
        let state = f.state();
        assert_eq!(
            (state.trouble, state.maximum, state.available),
            (None, Bytes::mib(left), Bytes::mib(left))
        );
        assert!(changes.has_changed().unwrap());
        let capacity = f.volumes.capacity(&Default::default()).await;
        assert_eq!((capacity.maximum, capacity.available), (state.maximum, state.available));
    }
}

#[tokio::test]
async fn a_full_group_shows_less_than_it_has_just_refused() {
    let f = fixture(BOUND).await;
    f.lvm.commit("vg0", |_| ());
    let refused = f.create("a", 361).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    assert_eq!((f.state().trouble, f.state().maximum), (None, Bytes::mib(360)));
}

#[tokio::test]
async fn what_is_free_on_a_disk_that_takes_no_new_extents_is_no_room() {
    let f = fixture(BOUND).await;
    f.create("a", 40).await.unwrap();
    f.create("b", 40).await.unwrap();
    f.lvm.commit("vg0", |vg| vg.pv("/dev/sda").allocatable = false);
    let refused = f.create("c", 8).await;
    assert!(matches!(refused, Err(VolumeError::NoRoom { .. })), "{refused:?}");
    assert_eq!((f.state().trouble, f.state().available, f.state().maximum), (None, Bytes::ZERO, Bytes::ZERO));
    let [group] = f.groups.all().try_into().ok().expect("not one group");
    group
        .turn(Intent::Change)
        .await
        .unwrap()
        .remove(&"a".parse::<CsiName>().map(|n| LvName::for_volume(&n)).unwrap())
        .await
        .unwrap();
    assert_eq!(f.state().available, Bytes::ZERO, "what was freed lies on that disk");
    f.lvm.commit("vg0", |vg| vg.pv("/dev/sda").allocatable = true);
    f.create("c", 8).await.unwrap();
    assert_eq!(f.state().available, Bytes::mib(312));
}

#[tokio::test]
async fn a_full_metadata_area_leaves_no_room() {
    let f = fixture(BOUND).await;
    f.lvm.commit("vg0", |vg| vg.metadata_free = Bytes::new(1 << 10));
    let refused = f.create("a", 8).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    assert_eq!((f.state().available, f.state().maximum), (Bytes::ZERO, Bytes::ZERO));
}

#[tokio::test]
async fn as_many_lvs_as_there_may_be_leave_no_room() {
    let f = fixture(BOUND).await;
    f.create("a", 8).await.unwrap();
    f.lvm.commit("vg0", |vg| vg.max_lvs = 1);
    let refused = f.create("b", 8).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    assert_eq!((f.state().available, f.state().maximum), (Bytes::ZERO, Bytes::ZERO));
    f.lvm.commit("vg0", |vg| vg.max_lvs = 2);
    f.create("b", 8).await.unwrap();
}

#[tokio::test]
async fn a_group_that_is_not_to_be_used_has_no_room_and_says_why() {
    let f = fixture(BOUND).await;
    f.create("a", 8).await.unwrap();
    f.lvm.commit("vg0", |vg| vg.exported = true);
    let changes = f.volumes.changes();
    f.groups.rescan().await.unwrap();
    assert!(changes.has_changed().unwrap());
    let refused = f.create("b", 8).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    let state = f.state();
    assert_eq!((state.available, state.maximum), (Bytes::ZERO, Bytes::ZERO));
    assert!(state.trouble.unwrap().contains("exported"));
}

#[tokio::test]
async fn a_group_that_cannot_be_read_has_no_room_until_it_can() {
    let f = fixture(BOUND).await;
    f.create("a", 8).await.unwrap();
    f.lvm.commit("vg0", |_| ());
    f.lvm.on_report(1, Fault::Refuse);
    let refused = f.create("b", 8).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    let state = f.state();
    assert!(state.trouble.is_some() && state.maximum == Bytes::ZERO, "{state:?}");
    f.create("b", 8).await.unwrap();
    assert_eq!(f.state().maximum, Bytes::mib(344));
}

#[tokio::test]
async fn a_group_that_hangs_has_no_room_until_it_answers() {
    let f = fixture(Duration::from_millis(20)).await;
    f.create("a", 8).await.unwrap();
    let held = f.lvm.hold_change(1);
    let volumes = Arc::clone(&f.volumes);
    let hanging = f.volumes.tracker.spawn(async move { create(&volumes, "b", 8).await });
    held.reached().await;
    let state = f.until("stuck", |state| state.trouble.is_some()).await;
    assert!(state.trouble.unwrap().contains("is stuck") && state.maximum == Bytes::ZERO);
    let refused = f.create("c", 8).await;
    assert!(means_elsewhere(&refused), "{refused:?}");
    held.release();
    f.until("well again", |state| state.maximum == Bytes::mib(344)).await;
    hanging.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_group_without_its_disks_has_no_room() {
    let f = fixture(BOUND).await;
    f.create("a", 8).await.unwrap();
    f.lvm.edit("vg0", |vg| vg.pvs.iter_mut().for_each(|pv| pv.present = false));
    f.groups.rescan().await.unwrap();
    assert!(f.volumes.states().iter().all(|state| state.maximum == Bytes::ZERO));
}

#[tokio::test]
async fn changes_by_others_are_found_by_reading_again() {
    let f = fixture(BOUND).await;
    let fresh = Arc::clone(&f.volumes);
    let reading = f.volumes.tracker.spawn(async move { fresh.keep_fresh(Duration::from_millis(5)).await });
    f.until("a first reading", |state| state.maximum == Bytes::mib(360)).await;
    f.lvm.commit("vg0", |vg| vg.pvs[0].extents = 200);
    f.until("a second reading", |state| state.maximum == Bytes::mib(760)).await;
    reading.abort();
}
