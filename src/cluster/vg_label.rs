//! The label that says which nodes a volume group is on.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{Segment, VG_KEY_PREFIX, VgUuid};

/// The value of every label of a group.
pub(super) const VALUE: &str = "true";

/// The key of the label that a node has which a group is on.
pub fn vg_label(vg: &VgUuid) -> String {
    format!("{VG_KEY_PREFIX}/{vg}")
}

fn vg_of_label(key: &str, value: &str) -> Option<VgUuid> {
    match Segment::parse([(key, value)])?.pop()? {
        Segment::Vg(vg) => Some(vg),
        Segment::Node(_) => None,
    }
}

/// The groups that a node's labels name.
pub(super) fn groups_of(labels: &BTreeMap<String, String>) -> BTreeSet<VgUuid> {
    labels.iter().filter_map(|(key, value)| vg_of_label(key, value)).collect()
}
