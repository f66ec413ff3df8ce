//! The model: what is known of one volume, and what a call changes about it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::call::Call;

/// What a place holds that nobody has written to.
pub(super) const NOTHING: u64 = 0;

/// Something that is so, or is not, or either: a call that would change it was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fact {
    Yes,
    No,
    Either,
}

impl Fact {
    pub(super) const fn of(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }

    pub(super) const fn may_be(self, is: bool) -> bool {
        match self {
            Self::Yes => is,
            Self::No => !is,
            Self::Either => true,
        }
    }

    fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Either }
    }
}

/// What is known of a volume. All but `exists` tells how it is if it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) exists: Fact,
    /// The largest size that was answered: no size may be below that, of the LV or the file system.
    pub(super) least: u64,
    /// The largest size that was asked for.
    pub(super) most: u64,
    /// Whether it has ever been staged, as its tag says.
    pub(super) used: Fact,
    pub(super) staged: Fact,
    pub(super) published: Fact,
    /// The stamps, one of which is at that place. At a place that is not listed is [`NOTHING`].
    pub(super) content: BTreeMap<u64, BTreeSet<u64>>,
}

impl Facts {
    /// A volume that nobody has asked for.
    pub(super) const ABSENT: Self = Self {
        exists: Fact::No,
        least: 0,
        most: 0,
        used: Fact::No,
        staged: Fact::No,
        published: Fact::No,
        content: BTreeMap::new(),
    };

    fn fresh(size: u64) -> Self {
        Self { exists: Fact::Yes, least: size, most: size, ..Self::ABSENT }
    }

    /// What is known when this or the other may be so.
    pub(super) fn or(&self, other: &Self) -> Self {
        if other.exists == Fact::No {
            return Self { exists: self.exists.or(Fact::No), ..self.clone() };
        }
        if self.exists == Fact::No {
            return other.or(self);
        }
        let places = self.content.keys().chain(other.content.keys());
        let either = |place| self.at(place).union(&other.at(place)).copied().collect();
        Self {
            exists: self.exists.or(other.exists),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            used: self.used.or(other.used),
            staged: self.staged.or(other.staged),
            published: self.published.or(other.published),
            content: places.map(|place| (*place, either(*place))).collect(),
        }
    }

    /// The stamps, one of which is at that place.
    pub(super) fn at(&self, place: u64) -> BTreeSet<u64> {
        self.content.get(&place).cloned().unwrap_or_else(|| BTreeSet::from([NOTHING]))
    }

    /// What is known once the call is done.
    pub(super) fn after(&self, call: &Call) -> Self {
        if self.exists == Fact::No {
            return match call {
                Call::Create { size } => Self::fresh(*size),
                _ => self.clone(),
            };
        }
        // What can be done to it exists.
        let mut after = Self { exists: Fact::Yes, ..self.clone() };
        match call {
            // It may be the one of before, or one that was made in its place.
            Call::Create { size } if self.exists == Fact::Either => return after.or(&Self::fresh(*size)),
            Call::Create { .. } | Call::Read | Call::Stats | Call::Validate => {}
            Call::Stage => (after.used, after.staged) = (Fact::Yes, Fact::Yes),
            Call::Publish => after.published = Fact::Yes,
            Call::Write { place, stamp } => drop(after.content.insert(*place, BTreeSet::from([*stamp]))),
            Call::Expand { size } | Call::NodeExpand { size } => {
                (after.least, after.most) = (self.least.max(*size), self.most.max(*size));
            }
            Call::Unpublish => after.published = Fact::No,
            Call::Unstage => after.staged = Fact::No,
            Call::Delete => return Self::ABSENT,
        }
        after
    }

    /// What is known once that size was answered.
    pub(super) fn with_size(self, answered: Option<u64>) -> Self {
        Self { least: answered.unwrap_or(self.least), ..self }
    }

    /// What is known once the call was made: it is done, or it is not.
    pub(super) fn while_open(&self, call: &Call) -> Self {
        self.or(&self.after(call))
    }

    /// The power was cut: nothing is mounted any more.
    pub(super) fn lose_mounts(&mut self) {
        (self.staged, self.published) = (Fact::No, Fact::No);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8;

    #[test]
    fn a_call_without_an_answer_leaves_both_open() {
        let created = Facts::ABSENT.while_open(&Call::Create { size: SIZE });
        assert_eq!((created.exists, created.least, created.most), (Fact::Either, SIZE, SIZE));
        let staged = Facts::fresh(SIZE).while_open(&Call::Stage);
        assert_eq!((staged.exists, staged.used, staged.staged), (Fact::Yes, Fact::Either, Fact::Either));
        let grown = staged.while_open(&Call::Expand { size: 12 });
        assert_eq!((grown.least, grown.most), (SIZE, 12));
        let written = grown.after(&Call::Write { place: 1, stamp: 5 });
        let again = written.while_open(&Call::Write { place: 1, stamp: 6 });
        assert_eq!(again.at(1), [5, 6].into());
        assert_eq!(grown.while_open(&Call::Write { place: 2, stamp: 7 }).at(2), [NOTHING, 7].into());
    }

    #[test]
    fn an_answer_settles_what_was_open() {
        let open = Facts::fresh(SIZE).while_open(&Call::Delete);
        assert_eq!(open.exists, Fact::Either);
        assert_eq!(open.after(&Call::Delete), Facts::ABSENT);
        assert_eq!(open.after(&Call::Stage).exists, Fact::Yes);
        let open = Facts::ABSENT.while_open(&Call::Create { size: SIZE });
        assert_eq!(open.after(&Call::Create { size: SIZE }), Facts::fresh(SIZE));
        assert_eq!(open.after(&Call::Delete), Facts::ABSENT);
    }

    #[test]
    fn a_volume_made_again_after_an_open_delete_may_be_the_old_one() {
        let old = Facts::fresh(12).after(&Call::Stage).after(&Call::Write { place: 1, stamp: 5 });
        let again = old.while_open(&Call::Delete).after(&Call::Create { size: SIZE });
        assert_eq!((again.exists, again.least, again.most), (Fact::Yes, SIZE, 12));
        assert_eq!((again.used, again.at(1)), (Fact::Either, [NOTHING, 5].into()));
        assert_eq!(again.with_size(Some(12)).least, 12);
    }

    #[test]
    fn after_a_power_cut_nothing_is_mounted_and_nothing_is_lost() {
        let used = Facts::fresh(SIZE).after(&Call::Stage).after(&Call::Publish);
        let mut cut = used.clone();
        cut.lose_mounts();
        assert_eq!((cut.staged, cut.published, cut.used), (Fact::No, Fact::No, Fact::Yes));
        assert_eq!(cut.after(&Call::Stage).after(&Call::Publish), used);
    }
}
