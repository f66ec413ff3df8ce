use std::fmt;

use tonic::Status;

use super::error::RouteError;
use super::fleet::{Fleet, Linked};
use super::room::Choice;
use crate::cluster::{KnownNodes, Nodes, vg_label};
use crate::types::{GroupState, VgUuid};

/// Why nothing is made or changed in a group that a node shows: what it shows may be a copy, and the volumes be
/// on another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contest {
    /// Another node shows it too: one of them has a copy, or both have the same disks.
    Twice { vg: VgUuid, nodes: Vec<String> },
    /// Another node has its label, and may be running pods on it although it has no link here.
    Labelled { vg: VgUuid, node: String, on: String },
    /// Others have shown it at the same time, and are away now.
    Disputed(Disputed),
}

/// A group that a node has shown at the same time as others, of which nobody has settled who has a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disputed {
    vg: VgUuid,
    node: String,
    others: Vec<String>,
    /// Where its label is.
    on: Vec<String>,
}

/// Why the group's label does not come to that node, which alone shows it now.
pub(super) fn disputed(fleet: &Fleet, known: &KnownNodes, object: &str, vg: &VgUuid) -> Option<Disputed> {
    let dispute = fleet.disputed(vg, object)?;
    let labelled = known.labelled(vg);
    if labelled == [object] || (labelled.is_empty() && dispute.was_labelled(object)) {
        return None;
    }
    let on = labelled.into_iter().filter(|name| *name != object).map(str::to_owned).collect();
    Some(Disputed { vg: vg.clone(), node: object.to_owned(), others: dispute.others(object), on })
}

impl Disputed {
    /// The nodes that may have the group itself.
    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(String::as_str)
    }
}

impl fmt::Display for Disputed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vg, node, others, on } = self;
        let (others, label) = (others.join(" and "), vg_label(vg));
        write!(
            f,
            "volume group {vg} is shown by node {node}, and was shown by {others} at the same time: one has a copy, \
             and while it is not settled which, nothing is changed in it there and its label does not move. If node \
             {node} has the copy, give that a new UUID with vgimportclone. If it has the right one, "
        )?;
        match on.as_slice() {
            [] => write!(f, "give it the label: kubectl label node {node} {label}=true"),
            on => write!(f, "take the label off the other: kubectl label node {} {label}-", on.join(" ")),
        }
    }
}

/// What stands against making or changing something in that group of that node.
fn contest(fleet: &Fleet, known: &KnownNodes, object: &str, vg: &VgUuid) -> Option<Contest> {
    let mut nodes = fleet.others_with(vg, object);
    if !nodes.is_empty() {
        nodes.push(object.to_owned());
        nodes.sort_unstable();
        return Some(Contest::Twice { vg: vg.clone(), nodes });
    }
    if let Some(disputed) = disputed(fleet, known, object, vg) {
        return Some(Contest::Disputed(disputed));
    }
    let on = known.labelled(vg).into_iter().find(|name| *name != object)?;
    Some(Contest::Labelled { vg: vg.clone(), node: object.to_owned(), on: on.to_owned() })
}

/// Whether nothing stands against changing something in that group of that node.
///
/// # Errors
/// The nodes have not been listed yet, so that nobody can tell; or the group is contested.
pub(super) fn uncontested(fleet: &Fleet, nodes: &Nodes, object: &str, vg: &VgUuid) -> Result<(), RouteError> {
    let known = nodes.known();
    if !known.is_listed() {
        return Err(RouteError::Unlisted);
    }
    contest(fleet, &known, object, vg).map_or(Ok(()), |contest| Err(contest.into()))
}

/// The groups of the node that the class may use. The node itself chooses among them, so that one which
/// is contested stands against all.
pub(super) fn usable<'a>(
    fleet: &Fleet,
    known: &KnownNodes,
    linked: &'a Linked,
    choice: Choice<'_>,
) -> Result<Vec<&'a GroupState>, Contest> {
    let groups: Vec<_> = linked.state.groups.iter().filter(|group| choice.admits(group)).collect();
    match groups.iter().find_map(|group| contest(fleet, known, linked.session.object(), &group.uuid)) {
        Some(contest) => Err(contest),
        None => Ok(groups),
    }
}

impl From<Contest> for RouteError {
    fn from(contest: Contest) -> Self {
        match contest {
            Contest::Twice { vg, nodes } => Self::Twice { vg, nodes },
            Contest::Labelled { vg, node, on } => Self::Elsewhere { vg, node, on },
            Contest::Disputed(disputed) => Self::Disputed(disputed),
        }
    }
}

/// The answer to a create in a group that is contested.
pub(super) fn in_create(contest: Contest) -> Status {
    match contest.into() {
        // Nothing was started, and GetCapacity offers nothing there: let the scheduler choose again.
        lasting @ (RouteError::Twice { .. } | RouteError::Disputed(_)) => {
            Status::resource_exhausted(lasting.to_string())
        }
        // This passes within about a minute.
        error => error.into(),
    }
}
