use std::fmt;
use std::time::Duration;

/// How long something took, once for each time that it was done.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<Duration>);

/// What the driver and stock LVM did in turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Pair {
    pub(super) ours: Samples,
    pub(super) reference: Samples,
}

impl Samples {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The shortest of the times that so many percent of all times do not exceed (the nearest rank): always one
    /// of those that were measured, never something between two of them.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        assert!((1..=100).contains(&percent), "{percent} %");
        let mut times = self.0.clone();
        times.sort_unstable();
        let rank = (times.len() * percent).div_ceil(100);
        times[rank.checked_sub(1).expect("nothing was measured")]
    }
}

/// The figure in the middle, the lower one of two: one of those that were measured.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[(figures.len() - 1) / 2]
}

impl FromIterator<Duration> for Samples {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99] = [50, 99].map(|percent| ms(self.percentile(percent)));
        write!(f, "p50 {p50:.2} ms, p99 {p99:.2} ms")
    }
}

/// A time in milliseconds.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(times: impl IntoIterator<Item = u64>) -> [Duration; 3] {
        let samples: Samples = times.into_iter().map(Duration::from_millis).collect();
        [50, 99, 100].map(|percent| samples.percentile(percent))
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let ms = |times: [u64; 3]| times.map(Duration::from_millis);
        // Of a hundred, half are up to the 50th, and one is above the 99th.
        assert_eq!(percentiles((1..=100).rev()), ms([50, 99, 100]));
        assert_eq!(percentiles(1..=200), ms([100, 198, 200]));
        assert_eq!(
            (1..=100).map(Duration::from_millis).collect::<Samples>().to_string(),
            "p50 50.00 ms, p99 99.00 ms"
        );
        assert_eq!(percentiles([7]), ms([7, 7, 7]));
        assert_eq!(percentiles([9, 1]), ms([1, 9, 9]));
        assert_eq!(percentiles([3, 1, 2]), ms([2, 3, 3]));
        assert_eq!(percentiles([5, 5, 5, 80]), ms([5, 80, 80]));
    }

    #[test]
    fn the_median_is_a_figure_that_was_measured() {
        for (figures, expected) in
            [(vec![3.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0, 3.0, 2.0], 2.0), (vec![7.0], 7.0)]
        {
            assert!((median(figures) - expected).abs() < 1e-9);
        }
    }

    #[test]
    #[should_panic(expected = "nothing was measured")]
    fn of_nothing_there_is_no_percentile() {
        Samples::default().percentile(50);
    }
}
