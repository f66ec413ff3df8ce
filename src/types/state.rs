/// What a volume has been through, as its state tag tells.
///
/// The tag's value is one letter for every state, so that a change of state never makes the
/// group's metadata grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumeState {
    /// Made, and holding whatever was on the disk before: nothing may be read from it yet.
    Blank,
    /// Being filled from a source.
    Copying,
    /// Holding what Quarry made (a file system, zeroes, a copy), and never staged.
    Fresh,
    /// Staged at least once: it may hold a user's data.
    Used,
    /// Deleted, its extents not yet free.
    Condemned,
    /// A hidden volume whose extents another volume is to get.
    Growing,
}

impl VolumeState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Blank, Self::Copying, Self::Fresh, Self::Used, Self::Condemned, Self::Growing];

    /// The letter in the tag.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Blank => "b",
            Self::Copying => "c",
            Self::Fresh => "f",
            Self::Used => "u",
            Self::Condemned => "x",
            Self::Growing => "g",
        }
    }

    /// The state of that letter.
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }

    /// The word that people read.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Copying => "copying",
            Self::Fresh => "fresh",
            Self::Used => "used",
            Self::Condemned => "condemned",
            Self::Growing => "growing",
        }
    }
}

impl std::fmt::Display for VolumeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
