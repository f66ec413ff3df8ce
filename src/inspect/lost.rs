use std::collections::{BTreeMap, HashMap};

use super::table::{NOTHING, or_nothing, table};
use crate::cluster::{NodeView, VolumeView, vg_label};
use crate::types::{VgUuid, VolumeId};

/// How many claims a line names.
const NAMED: usize = 3;

/// A volume group that PersistentVolumes are in and no ready node has, or that is declared lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its identity.
    pub vg: VgUuid,
    /// The node that has its label, if any.
    pub node: Option<NodeView>,
    /// The PersistentVolumes in it.
    pub volumes: Vec<VolumeView>,
    /// What was noted when it was declared lost; `None` where it is not.
    pub declared: Option<String>,
}

/// Why a group is not declared lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLost {
    /// A node that works has it.
    #[error(
        "volume group {vg} is on node {node}, which is ready: it is not declared lost. Where only its disks are, Quarry takes the label away from the node after an hour; kubectl label node {node} {}- does so at once",
        vg_label(vg)
    )]
    Ready {
        /// The group.
        vg: VgUuid,
        /// The node.
        node: String,
    },
    /// Nothing would come of it.
    #[error(
        "no PersistentVolume of this cluster is in volume group {0}: nothing would come of declaring it lost. quarry lost prints the groups that are missing"
    )]
    Unknown(VgUuid),
}

/// The groups that are missing, and those that are declared lost.
pub fn missing(
    nodes: &[NodeView],
    volumes: Vec<VolumeView>,
    declared: &BTreeMap<VgUuid, String>,
) -> Vec<Missing> {
    let mut groups: BTreeMap<VgUuid, Vec<VolumeView>> =
        declared.keys().map(|vg| (vg.clone(), Vec::new())).collect();
    for volume in volumes {
        if let Ok(id) = volume.handle.parse::<VolumeId>() {
            groups.entry(id.vg).or_default().push(volume);
        }
    }
    let labelled = labelled(nodes);
    let all = groups.into_iter().map(|(vg, volumes)| Missing {
        node: labelled.get(&vg).map(|node| (*node).clone()),
        declared: declared.get(&vg).cloned(),
        vg,
        volumes,
    });
    all.filter(|group| group.declared.is_some() || !group.is_there()).collect()
}

/// The nodes by the groups whose labels they have; one that is ready before one that is not.
fn labelled(nodes: &[NodeView]) -> HashMap<&VgUuid, &NodeView> {
    let (ready, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.ready);
    let all = others.into_iter().chain(ready);
    all.flat_map(|node| node.groups.iter().map(move |vg| (vg, node))).collect()
}

/// What it means that a group is declared lost, for people.
///
/// # Errors
/// It is not to be declared lost.
pub fn declared(nodes: &[NodeView], volumes: Vec<VolumeView>, vg: &VgUuid) -> Result<String, NotLost> {
    if let Some(node) = labelled(nodes).get(vg).filter(|node| node.ready) {
        return Err(NotLost::Ready { vg: vg.clone(), node: node.name.clone() });
    }
    let groups = missing(nodes, volumes, &BTreeMap::new());
    let Some(group) = groups.into_iter().find(|group| group.vg == *vg) else {
        return Err(NotLost::Unknown(vg.clone()));
    };
    let lines = group.volumes.iter().map(volume_line);
    Ok(format!(
        "Volume group {vg} is declared lost. When these volumes are deleted while no node shows the group, that succeeds, and nothing is deleted:\n\n{}\n\
         Delete their claims and pods as ever. Should the group be seen again, it comes off the list by itself.\n",
        table(["VOLUME", "SIZE", "CLAIM"], lines),
    ))
}

fn volume_line(volume: &VolumeView) -> [String; 3] {
    [volume.name.clone(), or_nothing(volume.capacity.clone()), or_nothing(volume.claim.clone())]
}

impl Missing {
    /// The heading over [`Self::cells`].
    pub const HEADING: [&str; 5] = ["VOLUME GROUP", "NODE", "STATE", "VOLUMES", "CLAIMS"];

    fn is_there(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.ready)
    }

    /// The columns of a table.
    pub fn cells(&self) -> [String; 5] {
        let node = or_nothing(self.node.as_ref().map(|node| node.name.clone()));
        let state = match (&self.declared, &self.node) {
            (Some(note), _) => format!("lost ({note})"),
            (None, Some(_)) => "its node is not ready".to_owned(),
            (None, None) => "on no node".to_owned(),
        };
        let claims: Vec<&str> =
            self.volumes.iter().filter_map(|volume| volume.claim.as_deref()).take(NAMED).collect();
        let more = self.volumes.len() - claims.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let claims = if claims.is_empty() { NOTHING.to_owned() } else { claims.join(", ") };
        [self.vg.to_string(), node, state, self.volumes.len().to_string(), claims + &more]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vg(letter: char) -> VgUuid {
        "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".replace('Z', &letter.to_string()).parse().unwrap()
    }

    fn node(name: &str, ready: bool, groups: &[char]) -> NodeView {
        NodeView { name: name.to_owned(), ready, groups: groups.iter().map(|letter| vg(*letter)).collect() }
    }

    fn volume(group: char, number: u32) -> VolumeView {
        VolumeView {
            name: format!("pvc-{number}"),
            handle: format!("{}/pvc-{number}", vg(group)),
            claim: (number > 0).then(|| format!("prod/db-{number}")),
            capacity: Some("10Gi".to_owned()),
        }
    }

    fn lines(groups: &[Missing]) -> Vec<String> {
        groups.iter().map(|group| group.cells()[1..].join("; ")).collect()
    }

    #[test]
    fn a_group_that_no_ready_node_has_is_missing_and_one_that_is_declared_lost_is_told_as_well() {
        let nodes = [node("n1", true, &['A']), node("n2", false, &['B']), node("n3", true, &[])];
        let mut volumes: Vec<VolumeView> = (0..5).map(|number| volume('C', number)).collect();
        volumes.extend([volume('A', 6), volume('B', 7)]);
        let strange = VolumeView { handle: "by-hand".to_owned(), ..volume('A', 8) };
        volumes.push(strange);
        let declared = BTreeMap::from([(vg('D'), "declared on Monday".to_owned())]);
        assert_eq!(
            lines(&missing(&nodes, volumes, &declared)),
            [
                "n2; its node is not ready; 1; prod/db-7",
                "-; on no node; 5; prod/db-1, prod/db-2, prod/db-3 and 2 more",
                "-; lost (declared on Monday); 0; -",
            ]
        );
    }

    #[test]
    fn only_a_group_with_volumes_and_without_a_ready_node_is_declared_lost() {
        let nodes = [node("n1", true, &['A']), node("n2", false, &['A', 'B'])];
        let volumes = || vec![volume('A', 1), volume('B', 0)];
        let refused = declared(&nodes, volumes(), &vg('A')).unwrap_err();
        assert_eq!(refused, NotLost::Ready { vg: vg('A'), node: "n1".to_owned() });
        assert_eq!(declared(&nodes, volumes(), &vg('C')).unwrap_err(), NotLost::Unknown(vg('C')));
        let told = declared(&nodes, volumes(), &vg('B')).unwrap();
        assert!(told.contains("pvc-0   10Gi  -\n") && !told.contains("pvc-1"), "{told}");
    }
}
