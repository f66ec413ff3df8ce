use super::{Bytes, ExtentSize, Extents};

/// The sizes that a caller would take: CSI's `CapacityRange`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapacityRange {
    /// The least that is asked for; zero where the caller does not care.
    pub required: Bytes,
    /// The most that is allowed.
    pub limit: Option<Bytes>,
}

/// A range that no whole number of extents meets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The caller's two numbers contradict each other.
    #[error("the size asked for ({required}) is above the limit ({limit})")]
    Contradiction {
        /// What was asked for.
        required: Bytes,
        /// What was allowed.
        limit: Bytes,
    },
    /// The volume has more already than it may have.
    #[error("the volume has {present}, which is above the limit ({limit}): volumes do not shrink")]
    Larger {
        /// What the volume has.
        present: Bytes,
        /// What was allowed.
        limit: Bytes,
    },
    /// Rounding up to whole extents goes over the limit.
    #[error(
        "{required} is {rounded} in whole extents of {extent}, above the limit of {limit}: ask for a multiple of the extent size, or raise the limit"
    )]
    Rounded {
        /// What was asked for.
        required: Bytes,
        /// What it comes to in whole extents.
        rounded: Bytes,
        /// The size of an extent.
        extent: Bytes,
        /// What was allowed.
        limit: Bytes,
    },
}

impl CapacityRange {
    /// What a volume gets whose claim names no size (csi-sanity does that, Kubernetes never does).
    pub const DEFAULT_SIZE: Bytes = Bytes::mib(1024);

    /// The size to make, in whole extents: what is asked for, rounded up, at least `floor`.
    /// Without a required size it is the default, or what whole extents leave of the limit where that is lower.
    ///
    /// # Errors
    /// No whole number of extents lies in the range.
    pub fn extents(&self, extent: ExtentSize, floor: Bytes) -> Result<Extents, RangeError> {
        let limit = self.limit.unwrap_or(Bytes::new(u64::MAX));
        if self.required > limit {
            return Err(RangeError::Contradiction { required: self.required, limit });
        }
        let wanted = match self.required {
            Bytes::ZERO => Self::DEFAULT_SIZE.min(extent.size_of(extent.round_down(limit))),
            required => required,
        };
        let wanted = wanted.max(floor);
        let extents = extent.round_up(wanted).max(Extents::new(1));
        let rounded = extent.size_of(extents);
        if rounded > limit {
            return Err(RangeError::Rounded { required: wanted, rounded, extent: extent.bytes(), limit });
        }
        Ok(extents)
    }

    /// The size to grow a volume of `present` bytes to, in whole extents; never less than it has.
    ///
    /// # Errors
    /// No whole number of extents lies in the range, from the present size on.
    pub fn extents_from(&self, extent: ExtentSize, present: Bytes) -> Result<Extents, RangeError> {
        match self.limit {
            Some(limit) if self.required <= limit && limit < present => {
                Err(RangeError::Larger { present, limit })
            }
            _ => Self { required: self.required.max(present), ..*self }.extents(extent, Bytes::ZERO),
        }
    }

    /// Whether a volume of `size` is what the caller asked for.
    pub fn admits(&self, size: Bytes) -> bool {
        size >= self.required && self.limit.is_none_or(|limit| size <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mib4() -> ExtentSize {
        ExtentSize::new(Bytes::mib(4)).unwrap()
    }

    #[test]
    fn sizes_are_rounded_up_to_extents_and_judged_rounded() {
        let ask = |required, limit| {
            CapacityRange { required: Bytes::new(required), limit }.extents(mib4(), Bytes::ZERO)
        };
        assert_eq!(ask(10_000_001, None), Ok(Extents::new(3)));
        assert!(matches!(ask(10_000_001, Some(Bytes::new(10_000_002))), Err(RangeError::Rounded { .. })));
        assert!(matches!(ask(2, Some(Bytes::new(1))), Err(RangeError::Contradiction { .. })));
        assert_eq!(ask(0, None), Ok(Extents::new(256)));
        assert_eq!(ask(0, Some(Bytes::mib(8))), Ok(Extents::new(2)));
        assert_eq!(ask(0, Some(Bytes::mib(9))), Ok(Extents::new(2)));
        assert!(matches!(ask(0, Some(Bytes::mib(3))), Err(RangeError::Rounded { .. })));
    }

    #[test]
    fn what_a_volume_has_already_is_not_called_what_is_asked_for() {
        let grow = |required, limit| {
            let range = CapacityRange { required: Bytes::mib(required), limit: Some(Bytes::mib(limit)) };
            range.extents_from(mib4(), Bytes::mib(16))
        };
        assert_eq!(grow(8, 16), Ok(Extents::new(4)));
        let larger = RangeError::Larger { present: Bytes::mib(16), limit: Bytes::mib(12) };
        assert_eq!((grow(8, 12), grow(0, 12)), (Err(larger.clone()), Err(larger)));
        assert!(matches!(grow(20, 12), Err(RangeError::Contradiction { .. })));
    }

    proptest! {
        #[test]
        fn what_is_made_is_what_is_admitted(required in 0u64..1 << 50, extra in proptest::option::of(0u64..1 << 50)) {
            let range = CapacityRange { required: Bytes::new(required), limit: extra.map(|e| Bytes::new(required + e)) };
            if let Ok(extents) = range.extents(mib4(), Bytes::ZERO) {
                prop_assert!(range.admits(mib4().size_of(extents)));
            }
        }
    }
}
