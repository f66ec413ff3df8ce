use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// What is read of a token's claims (RFC 7519, section 4.1).
#[derive(Deserialize)]
struct Claims {
    exp: f64,
}

/// Until when a service account token is good, by its own word. Whether the word can be trusted is the
/// API server's to say. `None` for what is no token with an end.
pub(super) fn expiry(token: &str) -> Option<SystemTime> {
    let payload = token.split('.').nth(1)?;
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    // A negative, infinite or absurd number is no time.
    let end = Duration::try_from_secs_f64(claims.exp).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(payload: &str) -> String {
        format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload))
    }

    #[test]
    fn a_token_says_when_it_ends() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(expiry(&token(r#"{"exp":1800000000,"iss":"x"}"#)), Some(end));
        for bad in ["{}", r#"{"exp":-1}"#, r#"{"exp":1e300}"#, r#"{"exp":"soon"}"#, "", "[]"] {
            assert_eq!(expiry(&token(bad)), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*(\\.\\PC*){0,3}") {
            let _ = expiry(&text);
        }
    }
}
