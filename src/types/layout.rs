use super::Extents;

/// How a volume lies on the disks of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Extents one after another, on whatever disks have room.
    #[default]
    Linear,
}

impl Layout {
    /// The largest volume that `free` extents can hold in this layout.
    pub const fn largest(self, free: Extents) -> Extents {
        match self {
            Self::Linear => free,
        }
    }
}
