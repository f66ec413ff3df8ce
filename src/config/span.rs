use std::time::Duration;

use crate::types::ParseError;

/// A length of time as people write it: a whole number, and `s`, `m` or `h`. At most a day.
pub(super) fn parse(text: &str) -> Result<Duration, ParseError> {
    let bad = |why: &str| ParseError::new("time", text, why);
    let unit = text.chars().last().and_then(|unit| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        _ => None,
    });
    let seconds = unit.ok_or_else(|| bad("must end in s, m or h, as in 90s"))?;
    let number = &text[..text.len() - 1];
    let number: u64 = number.parse().map_err(|_| bad("must begin with a whole number, as in 90s"))?;
    let span = number.checked_mul(seconds).filter(|seconds| *seconds <= 24 * 3600);
    span.map(Duration::from_secs).ok_or_else(|| bad("must be at most a day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_units() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("5m", 300), ("24h", 86_400)] {
            assert_eq!(parse(text).unwrap().as_secs(), seconds, "{text}");
        }
        for bad in ["", "5", "m", "-1s", "1.5m", "5 m", "5ms", "25h", "99999999999999999999s", "5ü"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
