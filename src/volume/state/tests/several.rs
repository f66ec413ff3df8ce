//! A group that does not answer, beside one that does.

use super::*;
use crate::volume::GroupError;

/// The larger group, which is chosen while it answers, and the other.
const LARGE: &str = "vg0";
const SMALL: &str = "vg1";

async fn two_groups() -> Fixture {
    let f = fixture(BOUND).await;
    f.lvm.add_vg(SMALL, &[("/dev/sdb", 50)]);
    f.groups.rescan().await.unwrap();
    f
}

impl Fixture {
    /// The larger group's disk answers nothing, nor does a look that meets it end.
    fn hang(&self) {
        self.lvm.edit(LARGE, |vg| vg.pv("/dev/sda").present = false);
        self.lvm.fail_looks(true);
    }

    /// Reads both groups. A volume would do it too, but its preparation goes on beside a test.
    async fn read(&self) {
        for group in self.groups.all() {
            group.view().await.unwrap();
        }
    }

    fn answer(&self) {
        self.lvm.edit(LARGE, |vg| vg.pv("/dev/sda").present = true);
        self.lvm.fail_looks(false);
    }

    /// How many LVs there are in the larger group, and in the other.
    fn lvs(&self) -> (usize, usize) {
        let count = |vg| self.lvm.edit(vg, |vg| vg.lvs.len());
        (count(LARGE), count(SMALL))
    }
}

/// Neither made, nor a reason to choose another node: the volume may be here.
fn may_be_here(refused: &Result<(), VolumeError>) -> bool {
    matches!(refused, Err(VolumeError::Group(GroupError::Look(_) | GroupError::Engine { .. })))
}

#[tokio::test]
async fn what_is_not_in_the_group_that_hangs_is_made_in_the_other() {
    let f = two_groups().await;
    f.create("pvc-a", 8).await.unwrap();
    f.hang();
    f.create("pvc-b", 8).await.unwrap();
    let again = f.create("pvc-a", 8).await;
    assert!(may_be_here(&again), "{again:?}");
    assert_eq!(f.lvs(), (1, 1));
    f.answer();
    f.create("pvc-a", 8).await.unwrap();
    f.create("pvc-b", 8).await.unwrap();
    assert_eq!(f.lvs(), (1, 1));
}

#[tokio::test]
async fn a_group_that_was_never_read_may_hold_anything() {
    let f = two_groups().await;
    f.hang();
    let refused = f.create("pvc-a", 8).await;
    assert!(may_be_here(&refused), "{refused:?}");
    assert_eq!(f.lvs(), (0, 0));
}

#[tokio::test]
async fn what_lvm_was_asked_for_before_the_group_hung_is_not_made_a_second_time() {
    let f = two_groups().await;
    f.read().await;
    f.lvm.on_change(1, Fault::LostAfter);
    f.lvm.fail_looks(true);
    let lost = f.create("pvc-b", 8).await;
    assert!(lost.is_err());
    f.hang();
    let again = f.create("pvc-b", 8).await;
    assert!(may_be_here(&again), "{again:?}");
    assert_eq!(f.lvs(), (1, 0));
    f.create("pvc-c", 8).await.unwrap();
    f.answer();
    f.create("pvc-b", 8).await.unwrap();
    assert_eq!(f.lvs(), (1, 1));
}

#[tokio::test]
async fn a_creation_whose_group_hangs_when_its_turn_comes_goes_to_the_other() {
    let f = two_groups().await;
    f.read().await;
    let held = f.lvm.hold_change(1);
    let begin = |name| {
        let volumes = Arc::clone(&f.volumes);
        f.volumes.tracker.spawn(async move { create(&volumes, name, 8).await })
    };
    let first = begin("pvc-b");
    held.reached().await;
    let second = begin("pvc-c");
    let waits = || f.groups.all().iter().any(|group| group.waiting() > 0);
    while !waits() {
        tokio::task::yield_now().await;
    }
    f.hang();
    held.release();
    assert!(first.await.unwrap().is_err());
    second.await.unwrap().unwrap();
    assert_eq!(f.lvs(), (0, 1));
}

#[tokio::test]
async fn while_a_group_is_tried_again_in_vain_there_is_no_room_in_it() {
    let f = two_groups().await;
    f.read().await;
    f.lvm.commit(LARGE, |_| ());
    f.lvm.on_report(1, Fault::Refuse);
    f.create("pvc-b", 8).await.unwrap_err();
    let held = Held::default();
    f.lvm.on_report(1, Fault::Hold(held.clone()));
    let reading = f.volumes.tracker.spawn({
        let groups = f.groups.all();
        async move {
            for group in groups {
                drop(group.view().await);
            }
        }
    });
    held.reached().await;
    assert_eq!(f.volumes.capacity(&Default::default()).await.maximum, Bytes::mib(160));
    f.create("pvc-c", 8).await.unwrap();
    assert_eq!(f.lvs(), (0, 1));
    held.release();
    reading.await.unwrap();
    assert_eq!(f.volumes.capacity(&Default::default()).await.maximum, Bytes::mib(360));
}
