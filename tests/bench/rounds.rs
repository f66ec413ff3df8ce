//! Creating, expanding and deleting: the driver and stock commands in turn, in one group.

use super::ours::Ours;
use super::report::Report;
use super::samples::Pair;
use super::stock;
use crate::driver::{MIB, Mode, folder};

/// The size of a new volume. Growing adds as much each time.
const SIZE: u64 = 64 * MIB;

/// What a round measures, once for each side.
#[derive(Default)]
struct Operations {
    create: Pair,
    expand: Pair,
    expand_mounted: Pair,
    delete: Pair,
}

/// With so many LVs in the group before.
pub(super) async fn measure(ours: &Ours, report: &mut Report, lvs: usize, samples: usize) {
    let mut operations = Operations::default();
    for _ in 0..samples {
        operations.round(ours).await;
    }
    report.add_both("create", lvs, &operations.create);
    report.add_both("expand", lvs, &operations.expand);
    report.add_both("expand_mounted", lvs, &operations.expand_mounted);
    report.add_both("delete", lvs, &operations.delete);
}

impl Operations {
    /// The life of one volume of each side.
    async fn round(&mut self, ours: &Ours) {
        let (stock, target) = (stock::Lv::named("stock"), folder("stock"));
        stock::empty_archive();

        ours.rest().await;
        let (volume, time) = ours.create(SIZE, Mode::Ext4).await;
        self.create.ours.add(time);
        ours.prepared(&volume).await;
        ours.rest().await;
        self.create.reference.add(stock.create(SIZE));

        ours.rest().await;
        self.expand.ours.add(ours.expand(&volume, 2 * SIZE).await);
        ours.rest().await;
        self.expand.reference.add(stock.extend(2 * SIZE));

        ours.stage_and_publish(&volume).await;
        stock.mkfs_and_mount(&target);
        ours.rest().await;
        self.expand_mounted.ours.add(ours.expand(&volume, 3 * SIZE).await);
        ours.rest().await;
        self.expand_mounted.reference.add(stock.extend_mounted(3 * SIZE));

        ours.unpublish_and_unstage(&volume).await;
        stock.unmount();
        ours.rest().await;
        self.delete.ours.add(ours.delete(&volume).await);
        ours.rest().await;
        self.delete.reference.add(stock.remove());
    }
}
