//! From a blank volume to one that a pod can use.

use super::ours::Ours;
use super::report::{Figure, Report};
use super::samples::Pair;
use super::stock;
use crate::driver::{MIB, Mode, folder};

/// A small claim. mkfs takes the longer the larger the volume is, and the rest does not.
const SIZE: u64 = 1024 * MIB;

/// Staging is asked for as soon as the volume is made, so that all of its preparation falls into the time.
pub(super) async fn measure(ours: &Ours, report: &mut Report, samples: usize) {
    let (stock, target) = (stock::Lv::named("stock"), folder("stock"));
    let mut pair = Pair::default();
    for _ in 0..samples {
        ours.rest().await;
        let (volume, _) = ours.create(SIZE, Mode::Ext4).await;
        pair.ours.add(ours.stage_and_publish(&volume).await);
        ours.unpublish_and_unstage(&volume).await;
        ours.delete(&volume).await;

        stock::empty_archive();
        stock.create(SIZE);
        ours.rest().await;
        pair.reference.add(stock.mkfs_and_mount(&target));
        stock.unmount();
        stock.remove();
    }
    report.add(Figure::percentile("stage_publish_p50", 50, &pair));
}
