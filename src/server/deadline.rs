use std::time::Duration;

use http::HeaderMap;

/// The header in which a gRPC caller says how long it waits.
const HEADER: &str = "grpc-timeout";

/// How long before the caller's deadline it gets its answer: enough for the answer to arrive.
const MARGIN: Duration = Duration::from_secs(1);

/// How long a caller waits that names no deadline. The kubelet's and the sidecars' own deadlines are
/// two minutes or come in the header; nobody's connection is to hang for longer than that.
const UNSAID: Duration = Duration::from_secs(110);

/// How long a call may take before its caller must be told that it goes on.
pub(super) fn patience(headers: &HeaderMap) -> Duration {
    match headers.get(HEADER).and_then(|value| parse(value.to_str().ok()?)) {
        None => UNSAID,
        Some(limit) if limit < 2 * MARGIN => limit / 2,
        Some(limit) => limit - MARGIN,
    }
}

/// At most eight digits and a unit (gRPC over HTTP/2, "Timeout"); `None` for anything else.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Duration {
        patience(&HeaderMap::from_iter([(http::HeaderName::from_static(HEADER), text.parse().unwrap())]))
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
            assert_eq!(of(text).as_millis(), millis, "{text}");
        }
    }

    #[test]
    fn without_a_deadline_that_makes_sense_it_comes_within_two_minutes() {
        assert_eq!(patience(&HeaderMap::new()), UNSAID);
        for text in ["", "S", "12", "1x", "-1S", "123456789S", "1 S", "+1S", "\u{fc}S"] {
            let value = http::HeaderValue::from_bytes(text.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static(HEADER), value)]);
            assert_eq!(patience(&headers), UNSAID, "{text}");
        }
    }
}
