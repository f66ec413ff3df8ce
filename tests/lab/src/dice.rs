//! Random numbers that a seed repeats.

use std::ops::Range;
use std::time::Duration;

/// Numbers in a row that a seed and a name determine: `SplitMix64`.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The row of that seed which belongs to `who`: each has a row of their own, so that nobody's numbers
    /// depend on who comes first.
    pub fn new(seed: u64, who: u64) -> Self {
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
    pub fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// `true` once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.number(0..times) == 0
    }

    /// One of these, of which there has to be one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Takes one out of these, of which there has to be one. What remains may change its order.
    pub fn take<T>(&mut self, from: &mut Vec<T>) -> T {
        from.swap_remove(self.index(from.len()))
    }

    fn index(&mut self, count: usize) -> usize {
        // It is below a number that is a `usize` itself.
        usize::try_from(self.number(0..count as u64)).unwrap_or_default()
    }

    /// A time in the range, in milliseconds.
    pub fn time(&mut self, milliseconds: Range<u64>) -> Duration {
        Duration::from_millis(self.number(milliseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_each_has_numbers_of_their_own() {
        let row = |seed, who| {
            let mut dice = Dice::new(seed, who);
            [(); 8].map(|()| dice.number(0..1000))
        };
        assert_eq!(row(7, 1), row(7, 1));
        assert_ne!(row(7, 1), row(7, 2));
        assert_ne!(row(7, 1), row(8, 1));
    }

    #[test]
    fn what_is_taken_is_taken_once() {
        let (mut dice, mut from) = (Dice::new(7, 0), vec![1, 2, 3, 4, 5]);
        let mut taken = [(); 5].map(|()| dice.take(&mut from));
        taken.sort_unstable();
        assert_eq!((taken, from), ([1, 2, 3, 4, 5], Vec::new()));
    }
}
