use super::refusals::Refusals;
use crate::types::{Bytes, GroupState, Segment, VgName, VgUuid};
use crate::volume::Capacity;

/// Which groups of a node a class may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    /// The group that the class names, if it does.
    pub(super) name: Option<&'a VgName>,
    /// The group that the place names, if it does.
    pub(super) uuid: Option<&'a VgUuid>,
}

impl<'a> Choice<'a> {
    /// What a class that names this group, or none, may use in a place of these segments.
    pub(super) fn of(name: Option<&'a VgName>, place: &'a [Segment]) -> Self {
        let uuid = place.iter().find_map(|segment| match segment {
            Segment::Vg(uuid) => Some(uuid),
            Segment::Node(_) => None,
        });
        Self { name, uuid }
    }

    pub(super) fn admits(&self, group: &GroupState) -> bool {
        self.name.is_none_or(|name| *name == group.name) && self.uuid.is_none_or(|uuid| *uuid == group.uuid)
    }
}

/// What creation may use of these groups: the sum, and the largest volume of all.
pub(super) fn room<'a>(groups: impl IntoIterator<Item = &'a GroupState>, refusals: &Refusals) -> Capacity {
    groups.into_iter().fold(Capacity::default(), |sum, group| {
        let most = refusals.ceiling(&group.name).unwrap_or(Bytes::new(u64::MAX));
        let (available, maximum) = (group.available.min(most), group.maximum.min(most));
        add(sum, Capacity { available, maximum })
    })
}

/// The room of two places together.
pub(super) fn add(one: Capacity, other: Capacity) -> Capacity {
    Capacity {
        available: Bytes::new(one.available.get().saturating_add(other.available.get())),
        maximum: one.maximum.max(other.maximum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, mib: u64) -> GroupState {
        let uuid = if name == "a" {
            "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4"
        } else {
            "Yvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4"
        };
        GroupState {
            uuid: uuid.parse().unwrap(),
            name: name.parse().unwrap(),
            trouble: None,
            available: Bytes::mib(mib),
            maximum: Bytes::mib(mib / 2),
        }
    }

    fn offered(choice: Choice<'_>, refusals: &Refusals) -> (Bytes, Bytes) {
        let groups = [group("a", 100), group("b", 60)];
        let all = room(groups.iter().filter(|group| choice.admits(group)), refusals);
        (all.available, all.maximum)
    }

    #[test]
    fn a_class_has_the_sum_of_its_groups_and_the_largest_volume_of_any() {
        let any = Choice::of(None, &[]);
        assert_eq!(offered(any, &Refusals::default()), (Bytes::mib(160), Bytes::mib(50)));
        let name = "b".parse().unwrap();
        assert_eq!(
            offered(Choice::of(Some(&name), &[]), &Refusals::default()),
            (Bytes::mib(60), Bytes::mib(30))
        );
        let place = [Segment::Vg("Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap())];
        assert_eq!(
            offered(Choice::of(Some(&name), &place), &Refusals::default()),
            (Bytes::ZERO, Bytes::ZERO)
        );
    }

    #[test]
    fn nothing_is_offered_that_was_just_refused() {
        let mut refusals = Refusals::default();
        refusals.note(None, Bytes::mib(40), 1);
        let (_, maximum) = offered(Choice::of(None, &[]), &refusals);
        assert!(maximum < Bytes::mib(40));
    }
}
