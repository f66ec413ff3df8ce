use std::net::SocketAddr;

use crate::types::ParseError;

/// An address with a port, or `off`.
pub(super) fn parse(text: &str) -> Result<Option<SocketAddr>, ParseError> {
    if text == "off" {
        return Ok(None);
    }
    let why = "must be off, or an address and a port, as in 0.0.0.0:9809 or [::]:9809";
    text.parse().map(Some).map_err(|_| ParseError::new("address", text, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(parse("off").unwrap(), None);
        for text in ["0.0.0.0:9809", "[::]:9809", "127.0.0.1:1"] {
            assert_eq!(parse(text).unwrap().unwrap().to_string(), text);
        }
        for bad in ["", "on", "9809", ":9809", "localhost:9809", "0.0.0.0", "::1:9809"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
