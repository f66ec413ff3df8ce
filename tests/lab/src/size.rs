//! Sizes and durations as people write them on a command line: `1G`, `512M`, `10m`, `500ms`.

use std::time::Duration;

use crate::Error;

/// Reads a size in bytes. The suffixes `K`, `M`, `G` and `T` are powers of 1024; no suffix means bytes.
///
/// # Errors
///
/// [`Error::Invalid`] when `text` is not a number with one of these suffixes, or does not fit into 64 bits.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let (digits, shift) = match text.char_indices().last() {
        Some((end, 'K' | 'k')) => (&text[..end], 10),
        Some((end, 'M' | 'm')) => (&text[..end], 20),
        Some((end, 'G' | 'g')) => (&text[..end], 30),
        Some((end, 'T' | 't')) => (&text[..end], 40),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| Error::Invalid(format!("{text:?} is not a size such as 512M or 1G")))
}

/// Reads a duration with one of the suffixes `ms`, `s`, `m` and `h`.
///
/// # Errors
///
/// [`Error::Invalid`] when `text` is not a whole number with one of these suffixes.
pub fn parse_duration(text: &str) -> Result<Duration, Error> {
    // "ms" comes before "s" and "m", which it ends and begins with.
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    units
        .iter()
        .find_map(|(suffix, millis)| {
            let number: u64 = text.strip_suffix(suffix)?.parse().ok()?;
            number.checked_mul(*millis).map(Duration::from_millis)
        })
        .ok_or_else(|| Error::Invalid(format!("{text:?} is not a duration such as 30s or 10m")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("17").ok(), Some(17));
        assert_eq!(parse_size("2K").ok(), Some(2048));
        assert_eq!(parse_size("1G").ok(), Some(1 << 30));
        for wrong in ["", "G", "1.5G", "-1", "1GiB", "99999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("500ms").ok(), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("30s").ok(), Some(Duration::from_secs(30)));
        assert_eq!(parse_duration("10m").ok(), Some(Duration::from_secs(600)));
        for wrong in ["", "10", "s", "1.5s", "-1s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
