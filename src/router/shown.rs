use std::collections::HashMap;

use crate::types::{NodeName, VgUuid};

/// Which nodes show which group, so that nobody who asks for a group's nodes has to look through all nodes:
/// csi-provisioner asks for the room of each of them, again and again.
#[derive(Debug, Default)]
pub(super) struct Shown(HashMap<VgUuid, Vec<NodeName>>);

impl Shown {
    /// The nodes that show the group: one, if all is well.
    pub(super) fn by(&self, vg: &VgUuid) -> &[NodeName] {
        self.0.get(vg).map_or(&[], Vec::as_slice)
    }

    /// The groups that are shown.
    pub(super) fn all(&self) -> impl Iterator<Item = &VgUuid> {
        self.0.keys()
    }

    /// The node has shown those groups, and shows these now.
    pub(super) fn change(&mut self, node: &NodeName, before: &[VgUuid], now: &[VgUuid]) {
        if before == now {
            return;
        }
        for vg in before {
            self.remove(node, vg);
        }
        for vg in now {
            let nodes = self.0.entry(vg.clone()).or_default();
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
    }

    fn remove(&mut self, node: &NodeName, vg: &VgUuid) {
        let Some(nodes) = self.0.get_mut(vg) else { return };
        nodes.retain(|other| other != node);
        if nodes.is_empty() {
            self.0.remove(vg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> NodeName {
        text.parse().unwrap()
    }

    fn groups(letters: &str) -> Vec<VgUuid> {
        letters
            .chars()
            .map(|one| format!("{one}vlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4").parse().unwrap())
            .collect()
    }

    #[test]
    fn a_group_has_the_nodes_that_show_it_now() {
        let (mut shown, all) = (Shown::default(), groups("abc"));
        let by = |shown: &Shown| all.iter().map(|vg| shown.by(vg).to_vec()).collect::<Vec<_>>();
        shown.change(&node("n1"), &[], &groups("ab"));
        shown.change(&node("n2"), &[], &groups("bc"));
        assert_eq!(by(&shown), [vec![node("n1")], vec![node("n1"), node("n2")], vec![node("n2")]]);
        shown.change(&node("n1"), &groups("ab"), &groups("a"));
        assert_eq!(by(&shown), [vec![node("n1")], vec![node("n2")], vec![node("n2")]]);
        // A node that says the same group twice shows it once, and none when it is gone.
        shown.change(&node("n1"), &groups("a"), &groups("aa"));
        assert_eq!(shown.by(&all[0]), [node("n1")]);
        shown.change(&node("n1"), &groups("aa"), &[]);
        shown.change(&node("n2"), &groups("bc"), &[]);
        assert_eq!(shown.all().count(), 0, "nothing is kept of groups that nobody shows");
    }
}
