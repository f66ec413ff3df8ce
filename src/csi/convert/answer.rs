use std::collections::HashMap;

use super::topology;
use crate::proto::csi::v1 as proto;
use crate::types::Segment;
use crate::volume::{Capacity, Usage, VolumeInfo, VolumeUsage};
use proto::volume_usage::Unit;

/// A volume as CSI shows it. It can be used wherever its group is, and nothing about it needs to be
/// handed back in later calls.
pub fn volume(info: &VolumeInfo) -> proto::Volume {
    proto::Volume {
        capacity_bytes: info.size.to_i64(),
        volume_id: info.id.to_string(),
        volume_context: HashMap::new(),
        content_source: None,
        accessible_topology: vec![topology(&Segment::Vg(info.id.vg.clone()))],
    }
}

/// What creation may use. Both numbers are there always: the scheduler goes by the largest volume where it is
/// told, and by the sum where it is not.
pub fn capacity(capacity: Capacity) -> proto::GetCapacityResponse {
    proto::GetCapacityResponse {
        available_capacity: capacity.available.to_i64(),
        maximum_volume_size: Some(capacity.maximum.to_i64()),
        minimum_volume_size: None,
    }
}

/// How full a volume is, one entry for each unit that it is counted in: btrfs has no number of inodes.
pub fn usage(usage: VolumeUsage) -> Vec<proto::VolumeUsage> {
    match usage {
        VolumeUsage::Filesystem { bytes, inodes } => {
            let units = [(bytes, Unit::Bytes), (inodes, Unit::Inodes)];
            units
                .into_iter()
                .filter(|(usage, _)| usage.total > 0)
                .map(|(usage, unit)| of_unit(usage, unit))
                .collect()
        }
        VolumeUsage::Block(size) => {
            vec![proto::VolumeUsage {
                total: size.to_i64(),
                unit: Unit::Bytes.into(),
                ..proto::VolumeUsage::default()
            }]
        }
    }
}

fn of_unit(usage: Usage, unit: Unit) -> proto::VolumeUsage {
    let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
    proto::VolumeUsage {
        available: number(usage.available),
        total: number(usage.total),
        used: number(usage.used),
        unit: unit.into(),
    }
}
