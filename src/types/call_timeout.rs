use std::fmt;
use std::time::Duration;

/// How long the caller of an RPC waits, as the header `grpc-timeout` says it (gRPC over HTTP/2, "Timeout").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallTimeout(Duration);

/// How long before the caller's deadline it gets its answer: enough for the answer to arrive.
const MARGIN: Duration = Duration::from_secs(1);

/// How long a caller waits that names no deadline. The kubelet's and the sidecars' own deadlines are
/// two minutes or come in the header; nobody's connection is to hang for longer than that.
const UNSAID: Duration = Duration::from_secs(111);

/// The most that fits into the header's eight digits.
const MOST_DIGITS: u128 = 99_999_999;

impl CallTimeout {
    /// The header's name.
    pub const HEADER: &str = "grpc-timeout";

    /// The header's value; one that makes no sense, and none, count as just under two minutes.
    pub fn from_header(value: Option<&str>) -> Self {
        Self(value.and_then(parse).unwrap_or(UNSAID))
    }

    /// The time itself.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The time within which an answer must be made so that it arrives in time: a second less, or half of
    /// a short time.
    #[must_use]
    pub fn earlier(self) -> Self {
        Self(if self.0 < 2 * MARGIN { self.0 / 2 } else { self.0 - MARGIN })
    }
}

/// At most eight digits and a unit; `None` for anything else.
fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.is_empty() || number.len() > 8 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

impl fmt::Display for CallTimeout {
    /// The header's value, rounded down to a unit that it can be said in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(time) = self;
        if time.as_micros() <= MOST_DIGITS {
            write!(f, "{}u", time.as_micros())
        } else if time.as_millis() <= MOST_DIGITS {
            write!(f, "{}m", time.as_millis())
        } else {
            write!(f, "{}S", u128::from(time.as_secs()).min(MOST_DIGITS))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> CallTimeout {
        CallTimeout::from_header(Some(text))
    }

    #[test]
    fn the_answer_comes_before_the_deadline() {
        for (text, millis) in [
            ("120S", 119_000),
            ("2M", 119_000),
            ("19999999u", 18_999),
            ("2S", 1_000),
            ("1900m", 950),
            ("50m", 25),
            ("0S", 0),
            ("1H", 3_599_000),
        ] {
            assert_eq!(of(text).earlier().get().as_millis(), millis, "{text}");
        }
    }

    #[test]
    fn without_a_deadline_that_makes_sense_it_comes_within_two_minutes() {
        assert_eq!(CallTimeout::from_header(None).get(), UNSAID);
        for text in ["", "S", "12", "1x", "-1S", "123456789S", "1 S", "+1S", "\u{fc}S"] {
            assert_eq!(of(text).get(), UNSAID, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in ["0u", "25000u", "99999999u", "119000m", "60M", "99999999m", "99999999H"] {
            let time = of(text);
            let again = of(&time.to_string());
            let lost = time.get() - again.get().min(time.get());
            assert!(lost < Duration::from_secs(1) || time.get().as_secs() > 99_999_999, "{text}: {time}");
        }
    }
}
