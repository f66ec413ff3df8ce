use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::types::ParseError;

/// Where the gRPC services are served: the absolute path of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(PathBuf);

/// The longest path that a socket address holds, in bytes (unix(7), `sun_path` less the closing zero).
const LONGEST: usize = 107;

impl Endpoint {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for Endpoint {
    type Err = ParseError;

    /// `unix:///run/csi.sock`, `unix:/run/csi.sock` or the bare path, as sidecars and the specification
    /// ("Process Creation and Sockets") write it.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("endpoint", text, why);
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
        match path {
            _ if !path.starts_with('/') => Err(bad("must be unix:///PATH, or an absolute path")),
            _ if path.ends_with('/') => Err(bad("must name a file")),
            _ if path.contains('\0') => Err(bad("must not hold a zero byte")),
            _ if path.len() > LONGEST => Err(bad("must have a path of at most 107 bytes")),
            _ => Ok(Self(PathBuf::from(path))),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_unix_socket_with_an_absolute_path() {
        for text in ["unix:///run/q/csi.sock", "unix:/run/q/csi.sock", "/run/q/csi.sock"] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), "unix:///run/q/csi.sock", "{text}");
        }
        let long = format!("/{}", "x".repeat(LONGEST));
        for bad in ["", "csi.sock", "unix://csi.sock", "tcp://0.0.0.0:10000", "unix:///run/", "/a\0b", &long]
        {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
