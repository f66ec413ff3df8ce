//! Creating, by several callers at once.

use std::time::{Duration, Instant};

use super::ours::{Ours, Volume};
use super::report::{Figure, Report};
use super::stock;
use crate::driver::{MIB, Mode};

const SIZE: u64 = 64 * MIB;

/// The samples are taken in so many parts, the two sides in turn.
const PARTS: usize = 4;

/// Each caller creates one volume after another. The driver prepares those that are made at the same time.
pub(super) async fn measure(ours: &Ours, report: &mut Report, callers: usize, samples: usize) {
    let each = samples.div_ceil(PARTS * callers);
    let (mut own, mut reference) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..PARTS {
        stock::empty_archive();
        ours.rest().await;
        own += create(ours, callers, each).await;
        ours.rest().await;
        reference += create_stock(callers, each);
    }
    let [own, reference] = [own, reference].map(|time| per_second(PARTS * callers * each, time));
    report.add(Figure::new(format!("creates_per_second_{callers}"), own, Some(reference), "1/s"));
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// How long the driver took for all. Afterwards nothing of it is left.
async fn create(ours: &Ours, callers: usize, each: usize) -> Duration {
    let caller = async |_| {
        let mut volumes = Vec::new();
        for _ in 0..each {
            volumes.push(ours.create(SIZE, Mode::Ext4).await.0);
        }
        volumes
    };
    let begin = Instant::now();
    let volumes: Vec<Vec<Volume>> = futures_util::future::join_all((0..callers).map(caller)).await;
    let time = begin.elapsed();
    for volume in volumes.iter().flatten() {
        ours.prepared(volume).await;
        ours.delete(volume).await;
    }
    time
}

/// How long stock processes took for all.
fn create_stock(callers: usize, each: usize) -> Duration {
    let lv = |caller: usize, number: usize| stock::Lv::named(&format!("stock-{caller}-{number}"));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..callers {
            scope.spawn(move || {
                for number in 0..each {
                    lv(caller, number).create(SIZE);
                }
            });
        }
    });
    let time = begin.elapsed();
    for caller in 0..callers {
        for number in 0..each {
            lv(caller, number).remove();
        }
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_was_done_by_the_time_that_it_took() {
        assert!((per_second(50, Duration::from_millis(12_500)) - 4.0).abs() < 1e-9);
    }
}
