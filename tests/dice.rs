//! Random numbers that a seed repeats.

use std::ops::Range;
use std::time::Duration;

/// Numbers in a row that a seed and a name determine: `SplitMix64`.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The row of that seed which belongs to `who`: each has a row of their own, so that nobody's numbers
    /// depend on who comes first.
    pub(crate) fn new(seed: u64, who: u64) -> Self {
        let mut own = Self(seed ^ who.wrapping_mul(0xd1b5_4a32_d192_ed03));
        own.next();
        own
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in the range.
    pub(crate) fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// `true` once in `times`.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.number(0..times) == 0
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.number(0..from.len() as u64)).unwrap()]
    }

    /// A time in the range, in milliseconds.
    pub(crate) fn time(&mut self, milliseconds: Range<u64>) -> Duration {
        Duration::from_millis(self.number(milliseconds))
    }
}
