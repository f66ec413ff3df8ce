use std::fmt;

/// A range of protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    oldest: u32,
    newest: u32,
}

impl Versions {
    /// Those that this release speaks: its own, and the one before where there is one.
    pub const CURRENT: Self = Self::up_to(1);

    /// A release's own version, and the one before.
    pub const fn up_to(own: u32) -> Self {
        Self { oldest: if own > 1 { own - 1 } else { own }, newest: own }
    }

    /// Any range, as it came over the wire; one without any version in it shares none with anybody.
    pub(super) const fn new(oldest: u32, newest: u32) -> Self {
        Self { oldest, newest }
    }

    /// The oldest one.
    pub const fn oldest(self) -> u32 {
        self.oldest
    }

    /// The newest one.
    pub const fn newest(self) -> u32 {
        self.newest
    }

    /// Whether a version is among them.
    pub const fn contains(self, version: u32) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// The newest version that both speak.
    pub fn shared(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (self.contains(newest) && other.contains(newest)).then_some(newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "{}", self.newest)
        } else {
            write!(f, "{} to {}", self.oldest, self.newest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_one_apart_share_the_older_ones_version() {
        for own in 1..6 {
            let release = Versions::up_to(own);
            assert_eq!(release.shared(release), Some(own));
            let next = Versions::up_to(own + 1);
            assert_eq!((release.shared(next), next.shared(release)), (Some(own), Some(own)));
            let later = Versions::up_to(own + 2);
            assert_eq!((release.shared(later), later.shared(release)), (None, None));
        }
    }

    #[test]
    fn nonsense_shares_nothing() {
        for nonsense in [Versions::new(0, 0), Versions::new(2, 1), Versions::new(9, 9)] {
            assert_eq!(Versions::up_to(2).shared(nonsense), None, "{nonsense}");
            assert_eq!(nonsense.shared(Versions::up_to(2)), None, "{nonsense}");
        }
        assert_eq!(Versions::up_to(2).shared(Versions::new(0, u32::MAX)), Some(2));
    }
}
