use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// How long to wait between attempts: longer each time up to a bound, and never exactly as long as others
/// do, so that a thousand nodes do not come back to a controller in step.
#[derive(Debug)]
pub(super) struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
    dice: RandomState,
    thrown: u64,
}

impl Backoff {
    /// Waits of about `least` at first and `most` in the end.
    pub(super) fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, next: least, dice: RandomState::new(), thrown: 0 }
    }

    /// What was tried has worked: the next wait is a short one again.
    pub(super) const fn reset(&mut self) {
        self.next = self.least;
    }

    /// The next wait: from half of what it would be without chance to all of it.
    pub(super) fn wait(&mut self) -> Duration {
        let full = self.next.min(self.most);
        self.next = full.saturating_mul(2);
        self.thrown += 1;
        let part = u32::from(self.dice.hash_one(self.thrown).to_ne_bytes()[0]);
        full / 2 + full / 2 * part / 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_bounds_and_start_over() {
        let (least, most) = (Duration::from_millis(500), Duration::from_secs(30));
        let mut backoff = Backoff::new(least, most);
        for round in 0..20 {
            let full = least.saturating_mul(1 << round.min(10)).min(most);
            let wait = backoff.wait();
            assert!(full / 2 <= wait && wait <= full, "{round}: {wait:?} of {full:?}");
        }
        backoff.reset();
        assert!(backoff.wait() <= least);
    }

    #[test]
    fn no_two_go_in_step() {
        let waits = |mut backoff: Backoff| (0..8).map(|_| backoff.wait()).collect::<Vec<_>>();
        let one = || Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        assert_ne!(waits(one()), waits(one()));
    }
}
