use std::collections::HashMap;

use super::field::pairs;
use crate::proto::csi::v1 as proto;
use crate::types::Segment;

/// The segments of a place; `None` for one that we know nothing of, and for one that says nothing.
pub fn place(topology: &proto::Topology) -> Option<Vec<Segment>> {
    Segment::parse(pairs(&topology.segments)).filter(|segments| !segments.is_empty())
}

/// The places in which a volume may be made, those that the CO prefers first. An empty list means any
/// place; `None` that only places are named which we know nothing of.
pub fn places(requirement: Option<&proto::TopologyRequirement>) -> Option<Vec<Vec<Segment>>> {
    let Some(requirement) = requirement.filter(|requirement| !requirement.requisite.is_empty()) else {
        return Some(Vec::new());
    };
    let preferred = requirement.preferred.iter().filter(|place| requirement.requisite.contains(place));
    let mut places: Vec<Vec<Segment>> = Vec::new();
    for place in preferred.chain(&requirement.requisite).filter_map(place) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (!places.is_empty()).then_some(places)
}

/// A segment as CSI writes it.
pub fn topology(segment: &Segment) -> proto::Topology {
    proto::Topology { segments: HashMap::from_iter(segment.to_map()) }
}
