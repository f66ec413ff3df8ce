//! What whoever runs the tests may ask for: how long, how often, and the same again.

use std::io::Write as _;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The seed, to repeat what was asked in an earlier run. Which call is done first then is still the
/// machine's choice.
const SEED: &str = "QUARRY_LOAD_SEED";

/// How long the mixed load lasts, in seconds.
const SECONDS: &str = "QUARRY_LOAD_SECONDS";

/// How often the power is cut.
const CUTS: &str = "QUARRY_LOAD_CUTS";

/// How many moments of a recorded life are begun again from.
const MOMENTS: &str = "QUARRY_LOAD_MOMENTS";

fn wish<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let wish = text.parse();
    Some(wish.unwrap_or_else(|_| panic!("{name} is {text:?}, and should be a number")))
}

/// How long the mixed load lasts.
pub(crate) fn length() -> Duration {
    Duration::from_secs(wish(SECONDS).unwrap_or(30))
}

/// How often the power is cut.
pub(crate) fn cuts() -> u64 {
    wish(CUTS).unwrap_or(10)
}

/// How many moments of a life are tried in which the power may be cut.
pub(crate) fn moments() -> usize {
    wish(MOMENTS).unwrap_or(30)
}

/// The seed, drawn here unless somebody has wished for one, and told.
pub(crate) fn draw(test: &str) -> u64 {
    let seed = wish(SEED).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    });
    if !lab::is_guest() {
        say(&format!("{test}: {SEED}={seed}"));
    }
    seed
}

/// A machine that knows the seed. Odd seeds have udev run on it.
pub(crate) fn machine(test: &str) -> lab::Machine {
    let seed = draw(test);
    let machine = lab::Machine::new().env(SEED, seed.to_string());
    if seed % 2 == 1 { machine.udev() } else { machine }
}

/// Says something past the test framework, which keeps what tests print to itself unless they fail.
pub(crate) fn say(what: &str) {
    std::io::stderr().write_all(format!("load: {what}\n").as_bytes()).unwrap();
}

/// The seed, in a guest.
pub(crate) fn seed() -> u64 {
    wish(SEED).unwrap()
}
