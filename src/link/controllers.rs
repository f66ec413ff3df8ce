use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::types::ParseError;

/// Where a node's controllers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Controllers {
    /// At all addresses of a DNS name, which come and go.
    Name {
        /// The name.
        host: String,
        /// The port, the same at each address.
        port: u16,
    },
    /// At these addresses.
    Fixed(BTreeSet<SocketAddr>),
}

/// The longest name that DNS has.
const LONGEST_NAME: usize = 253;

/// How long an answer of the DNS is waited for. The resolver's own patience can be longer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Controllers {
    /// Their addresses now.
    ///
    /// # Errors
    /// The name cannot be looked up, which also is so while it has no addresses.
    pub(super) async fn addresses(&self) -> io::Result<BTreeSet<SocketAddr>> {
        match self {
            Self::Fixed(addresses) => Ok(addresses.clone()),
            Self::Name { host, port } => {
                let found = timeout(PATIENCE, lookup_host((host.as_str(), *port))).await;
                Ok(found.map_err(|_| io::ErrorKind::TimedOut)??.collect())
            }
        }
    }
}

impl FromStr for Controllers {
    type Err = ParseError;

    /// `quarry-controller.quarry.svc:9443`, or addresses with commas between them: `10.0.0.1:9443`,
    /// `[fd00::1]:9443`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("controller", text, why);
        let addresses: Result<BTreeSet<SocketAddr>, _> = text.split(',').map(str::parse).collect();
        if let Ok(addresses) = addresses {
            return Ok(Self::Fixed(addresses));
        }
        let shape = "must be NAME:PORT, or ADDRESS:PORT with a comma between several";
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad(shape))?;
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if host.is_empty() || host.len() > LONGEST_NAME || !host.bytes().all(legal) {
            return Err(bad(shape));
        }
        match port.parse() {
            Ok(0) | Err(_) => Err(bad("must have a port from 1 to 65535")),
            Ok(port) => Ok(Self::Name { host: host.to_owned(), port }),
        }
    }
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Fixed(addresses) => {
                let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_read_back() {
        for text in
            ["quarry-controller.quarry.svc:9443", "10.0.0.1:9443", "10.0.0.1:1,10.0.0.2:1,[fd00::1]:1"]
        {
            assert_eq!(text.parse::<Controllers>().unwrap().to_string(), text);
        }
        let long = format!("{}:1", "x".repeat(254));
        for bad in
            ["", ":1", "name", "name:", "name:0", "name:65536", "https://name:1", "a,b:1", "fd00::1:1", &long]
        {
            assert!(bad.parse::<Controllers>().is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_name_is_looked_up() {
        let found = "localhost:9443".parse::<Controllers>().unwrap().addresses().await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|a| a.port() == 9443 && a.ip().is_loopback()));
    }
}
