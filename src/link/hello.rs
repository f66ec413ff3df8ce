use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::roots::{self, RootsError};
use super::token::TokenError;
use super::{SERVER_NAME, TokenFile, Tuning, frame};
use crate::proto::quarry::v1::{Hello, Welcome};
use crate::types::NodeName;

/// Why a controller that was dialled gave no link.
#[derive(Debug, thiserror::Error)]
pub(super) enum HelloError {
    /// The CA is not known.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// There is no token to show.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Nobody is there.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// Whoever is there is no controller of this cluster, or broke off.
    #[error("no TLS with a controller of this cluster")]
    Tls(#[source] io::Error),
    /// The controller broke off.
    #[error("the controller ended the hello")]
    Broken(#[source] io::Error),
    /// It was not over in time.
    #[error("the hello was not over in time")]
    Late,
    /// The controller said no.
    #[error("the controller refuses this node: {0}")]
    Refused(String),
    /// The controller knows this node under another name.
    #[error(
        "the token is that of node {theirs}, and this driver calls itself {own}: set --node-name to the name of the Node object (spec.nodeName)"
    )]
    Misnamed {
        /// What the token says.
        theirs: String,
        /// What this node's settings say.
        own: NodeName,
    },
    /// The controller said something that makes no sense.
    #[error("the controller chose protocol version {0}, which this driver does not speak")]
    Version(u32),
}

/// A controller that has welcomed this node.
pub(super) struct Welcomed {
    pub(super) stream: TlsStream<TcpStream>,
    pub(super) version: u32,
    pub(super) driver_version: String,
}

/// What a node says hello with.
pub(super) struct Greeting<'a> {
    pub(super) node: &'a NodeName,
    pub(super) ca: &'a Path,
    pub(super) token: &'a TokenFile,
    pub(super) tuning: &'a Tuning,
}

impl Greeting<'_> {
    /// The node's half of a hello: connects, makes sure whom it talks to, and says who it is.
    pub(super) async fn say_to(&self, address: SocketAddr) -> Result<Welcomed, HelloError> {
        timeout(self.tuning.hello, self.say_in_time(address)).await.unwrap_or(Err(HelloError::Late))
    }

    async fn say_in_time(&self, address: SocketAddr) -> Result<Welcomed, HelloError> {
        let tls = roots::connector(self.ca).await?;
        let token = self.token.read().await?;
        let stream = TcpStream::connect(address).await.map_err(HelloError::Connect)?;
        stream.set_nodelay(true).map_err(HelloError::Connect)?;
        let name =
            ServerName::try_from(SERVER_NAME).map_err(|error| HelloError::Tls(io::Error::other(error)))?;
        let mut stream = tls.connect(name, stream).await.map_err(HelloError::Tls)?;
        let hello = Hello {
            oldest_version: self.tuning.versions.oldest(),
            newest_version: self.tuning.versions.newest(),
            driver_version: env!("CARGO_PKG_VERSION").to_owned(),
            token: token.reveal().to_owned(),
        };
        frame::write(&mut stream, &hello).await.map_err(HelloError::Broken)?;
        let welcome = frame::read(&mut stream).await.map_err(HelloError::Broken)?;
        self.check(&welcome)?;
        Ok(Welcomed { stream, version: welcome.version, driver_version: welcome.driver_version })
    }

    fn check(&self, welcome: &Welcome) -> Result<(), HelloError> {
        let Welcome { version, refusal, node, .. } = welcome;
        if !refusal.is_empty() {
            return Err(HelloError::Refused(refusal.clone()));
        }
        if !self.tuning.versions.contains(*version) {
            return Err(HelloError::Version(*version));
        }
        // Volumes are asked for by the node's name: under two names, none would ever be made.
        if !node.is_empty() && node.parse().as_ref() != Ok(self.node) {
            return Err(HelloError::Misnamed { theirs: node.clone(), own: self.node.clone() });
        }
        Ok(())
    }
}
