use std::path::PathBuf;

use super::state::{Lv, Pv, Vg};
use crate::lvm::{LvRow, PvRow, SegmentRow, Unallocatable, VgRow};
use crate::types::{Bytes, Extents, PeRange};

/// What a look at the whole machine shows.
pub(super) fn pvs(vgs: &[Vg]) -> Vec<PvRow> {
    let rows = |vg: &Vg| {
        let everything: Vec<PathBuf> = vg.pvs.iter().map(|pv| pv.device.clone()).collect();
        let row = self::vg(vg, &everything);
        vg.pvs.iter().flat_map(|pv| pv_rows(pv, &row)).collect::<Vec<_>>()
    };
    vgs.iter().filter(|vg| vg.pvs.iter().any(|pv| pv.present)).flat_map(rows).collect()
}

fn pv_rows(pv: &Pv, vg: &VgRow) -> Vec<PvRow> {
    let row = |device: Option<&PathBuf>| PvRow {
        uuid: pv.uuid.parse().unwrap(),
        device: device.cloned(),
        duplicate: pv.copy.is_some(),
        vg: Some(vg.clone()),
    };
    let first = row(pv.present.then_some(&pv.device));
    std::iter::once(first).chain(pv.copy.iter().map(|copy| row(Some(copy)))).collect()
}

/// The group's row, as an engine sees it that sees `devices`.
pub(super) fn vg(vg: &Vg, devices: &[PathBuf]) -> VgRow {
    let missing = (0..vg.pvs.len()).filter(|pv| !vg.sees(devices, *pv)).count();
    VgRow {
        uuid: vg.uuid.clone(),
        name: vg.name.parse().unwrap(),
        seqno: vg.seqno,
        extent_size: vg.extent_size,
        extents: Extents::new(vg.pvs.iter().map(|pv| pv.extents).sum()),
        free: Extents::new(vg.free()),
        lv_count: vg.lvs.len().try_into().unwrap(),
        max_lvs: vg.max_lvs,
        missing_pvs: missing.try_into().unwrap(),
        exported: vg.exported,
        shared: vg.shared,
        system_id: vg.system_id.clone(),
        metadata_size: Bytes::new(1_044_480),
        metadata_free: vg.metadata_free,
    }
}

/// Those of the group's disks that take no new extents.
pub(super) fn unallocatable(vg: &Vg) -> Vec<Unallocatable> {
    let free = |pv| Extents::new(vg.free_on(pv).iter().map(|piece| piece.count).sum());
    let closed = vg.pvs.iter().enumerate().filter(|(_, pv)| pv.present && !pv.allocatable);
    closed.map(|(at, pv)| Unallocatable { device: pv.device.clone(), free: free(at) }).collect()
}

/// An LV's row.
pub(super) fn lv(vg: &Vg, lv: &Lv, devices: &[PathBuf]) -> LvRow {
    LvRow {
        uuid: lv.uuid.parse().unwrap(),
        name: lv.name.clone(),
        size: vg.extent_size.size_of(Extents::new(lv.extents())),
        tags: lv.tags.iter().cloned().collect(),
        created: lv.created,
        active: lv.active,
        open: lv.open,
        suspended: lv.suspended,
        partial: is_partial(vg, lv, devices),
        origin: lv.origin,
        kind: lv.kind.clone(),
        vg: None,
        fault: None,
    }
}

pub(super) fn is_partial(vg: &Vg, lv: &Lv, devices: &[PathBuf]) -> bool {
    lv.pieces.iter().any(|piece| !vg.sees(devices, piece.pv))
}

/// Where an LV lies.
pub(super) fn segments(vg: &Vg, lv: &Lv) -> Vec<SegmentRow> {
    let range = |pv: usize, first: u64, count: u64| PeRange {
        device: vg.pvs[pv].device.display().to_string(),
        first,
        last: first + count - 1,
    };
    let pieces = lv.pieces.iter();
    pieces
        .map(|p| SegmentRow { kind: lv.kind.clone(), ranges: vec![range(p.pv, p.first, p.count)] })
        .collect()
}
