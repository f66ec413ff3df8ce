//! What whoever runs the scenario may ask for: the same again, or for longer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Error;

/// The seed, to draw the same again.
pub(super) const SEED: &str = "QUARRY_CHAOS_SEED";

/// For how many seconds faults strike.
const SECONDS: &str = "QUARRY_CHAOS_SECONDS";
const DEFAULT_SECONDS: u64 = 600;
/// The rest of what a scenario may take is for what comes after.
const MOST_SECONDS: u64 = 900;

/// The seed that is wished for, or a new one.
pub(super) fn seed() -> Result<u64, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(wish(SEED)?.unwrap_or(u64::from(now.subsec_nanos()) ^ now.as_secs()))
}

/// For how long faults strike.
pub(super) fn length() -> Result<Duration, Error> {
    match wish(SECONDS)?.unwrap_or(DEFAULT_SECONDS) {
        seconds if seconds <= MOST_SECONDS => Ok(Duration::from_secs(seconds)),
        seconds => Err(Error::other(format!(
            "{SECONDS} is {seconds}, and can be at most {MOST_SECONDS}: a scenario has half an hour in all"
        ))),
    }
}

fn wish(name: &str) -> Result<Option<u64>, Error> {
    std::env::var(name).ok().map(|text| parse(name, &text)).transpose()
}

fn parse(name: &str, text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::other(format!("{name} is {text:?}, and should be a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_a_whole_number() {
        assert_eq!(parse(SEED, "7").unwrap(), 7);
        let refused = parse(SEED, "7 s").unwrap_err().to_string();
        assert_eq!(refused, "QUARRY_CHAOS_SEED is \"7 s\", and should be a whole number");
    }
}
