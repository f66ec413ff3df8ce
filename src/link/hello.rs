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

/// The node's half of a hello: connects, makes sure whom it talks to, and says who it is.
pub(super) async fn hello(
    address: SocketAddr,
    ca: &Path,
    token: &TokenFile,
    tuning: &Tuning,
) -> Result<Welcomed, HelloError> {
    timeout(tuning.hello, hello_in_time(address, ca, token, tuning)).await.unwrap_or(Err(HelloError::Late))
}

async fn hello_in_time(
    address: SocketAddr,
    ca: &Path,
    token: &TokenFile,
    tuning: &Tuning,
) -> Result<Welcomed, HelloError> {
    let tls = roots::connector(ca).await?;
    let token = token.read().await?;
    let stream = TcpStream::connect(address).await.map_err(HelloError::Connect)?;
    stream.set_nodelay(true).map_err(HelloError::Connect)?;
    let name = ServerName::try_from(SERVER_NAME).map_err(|error| HelloError::Tls(io::Error::other(error)))?;
    let mut stream = tls.connect(name, stream).await.map_err(HelloError::Tls)?;
    let hello = Hello {
        oldest_version: tuning.versions.oldest(),
        newest_version: tuning.versions.newest(),
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        token: token.reveal().to_owned(),
    };
    frame::write(&mut stream, &hello).await.map_err(HelloError::Broken)?;
    let Welcome { version, driver_version, refusal } =
        frame::read(&mut stream).await.map_err(HelloError::Broken)?;
    if !refusal.is_empty() {
        return Err(HelloError::Refused(refusal));
    }
    if !tuning.versions.contains(version) {
        return Err(HelloError::Version(version));
    }
    Ok(Welcomed { stream, version, driver_version })
}
