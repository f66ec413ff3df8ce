use std::time::Duration;

use http::HeaderMap;

use crate::types::CallTimeout;

/// How long a call may take before its caller must be told that it goes on.
pub(super) fn patience(headers: &HeaderMap) -> Duration {
    let value = headers.get(CallTimeout::HEADER).and_then(|value| value.to_str().ok());
    CallTimeout::from_header(value).earlier().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_told_before_its_deadline() {
        let mut headers = HeaderMap::new();
        assert_eq!(patience(&headers), Duration::from_secs(110));
        headers.insert(CallTimeout::HEADER, "120S".parse().unwrap());
        assert_eq!(patience(&headers), Duration::from_secs(119));
        headers.insert(CallTimeout::HEADER, http::HeaderValue::from_bytes(b"\xfcS").unwrap());
        assert_eq!(patience(&headers), Duration::from_secs(110));
    }
}
