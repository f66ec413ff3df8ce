use std::io;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::lobby::Place;
use super::{ReviewError, Reviewed, Reviewer, Token, Tuning, Versions, frame};
use crate::proto::quarry::v1::{Hello, Welcome};
use crate::types::{NodeName, ParseError};

/// Why a connection did not become a link.
#[derive(Debug, thiserror::Error)]
pub(super) enum GreetError {
    /// It ended, or what came was no hello.
    #[error("no hello came")]
    Silent(#[source] io::Error),
    /// It was not over in time.
    #[error("the hello was not over in time")]
    Late,
    /// Too many are silent.
    #[error("too many connections say nothing: a newer one took its place")]
    Crowded,
    /// No version is shared.
    #[error("{0}")]
    Version(String),
    /// The token is not good, or could not be judged.
    #[error("{0}")]
    Token(#[from] ReviewError),
    /// The node has a name that cannot be.
    #[error(transparent)]
    Name(#[from] ParseError),
    /// It was welcome, and ended.
    #[error("the connection ended before it could be welcomed")]
    Gone(#[source] io::Error),
}

/// A node that has said who it is, and was welcomed.
pub(super) struct Greeted {
    pub(super) stream: TlsStream<TcpStream>,
    pub(super) node: NodeName,
    pub(super) reviewed: Reviewed,
    pub(super) version: u32,
    pub(super) driver_version: String,
}

/// The controller's half of a hello.
pub(super) struct Greeter<'a> {
    pub(super) tls: &'a TlsAcceptor,
    pub(super) reviewer: &'a dyn Reviewer,
    pub(super) reviews: &'a Semaphore,
    pub(super) tuning: &'a Tuning,
}

impl Greeter<'_> {
    /// Hears a node's hello, and answers it. Gives up when the time for it is over, or `place` is lost.
    pub(super) async fn greet(&self, stream: TcpStream, place: Place) -> Result<Greeted, GreetError> {
        timeout(self.tuning.hello, self.greet_in_time(stream, place)).await.unwrap_or(Err(GreetError::Late))
    }

    async fn greet_in_time(&self, stream: TcpStream, place: Place) -> Result<Greeted, GreetError> {
        let (mut stream, hello) = tokio::select! {
            biased;
            () = place.lost.cancelled() => return Err(GreetError::Crowded),
            heard = self.hear(stream) => heard.map_err(GreetError::Silent)?,
        };
        // From here on nobody needs to be silent any more: what is left is ours to do.
        drop(place);
        let judged = self.judge(&hello).await;
        let mut answer =
            Welcome { driver_version: env!("CARGO_PKG_VERSION").to_owned(), ..Welcome::default() };
        match &judged {
            Ok((version, _, reviewed)) => {
                answer.version = *version;
                answer.node.clone_from(&reviewed.node);
            }
            Err(error) => answer.refusal = error.to_string(),
        }
        let sent = frame::write(&mut stream, &answer).await;
        if judged.is_err() {
            // What was said is to arrive; whether it did changes nothing.
            let _ = stream.shutdown().await;
        }
        let (version, node, reviewed) = judged?;
        sent.map_err(GreetError::Gone)?;
        Ok(Greeted { stream, node, reviewed, version, driver_version: hello.driver_version })
    }

    async fn hear(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Hello)> {
        stream.set_nodelay(true)?;
        let mut stream = self.tls.accept(stream).await?;
        let hello = frame::read(&mut stream).await?;
        Ok((stream, hello))
    }

    async fn judge(&self, hello: &Hello) -> Result<(u32, NodeName, Reviewed), GreetError> {
        let own = self.tuning.versions;
        let theirs = Versions::new(hello.oldest_version, hello.newest_version);
        let version = own.shared(theirs).ok_or_else(|| GreetError::Version(apart(own, theirs, hello)))?;
        // Half the time: the node is to hear why, and not to hang up first.
        let review = timeout(self.tuning.hello / 2, self.review(Token::new(hello.token.clone()))).await;
        let late = || ReviewError::Unavailable("the token could not be reviewed in time".to_owned());
        let reviewed = review.unwrap_or_else(|_| Err(late()))?;
        Ok((version, reviewed.node.parse()?, reviewed))
    }

    async fn review(&self, token: Token) -> Result<Reviewed, ReviewError> {
        // The semaphore is never closed; were it, this would be no reason to refuse anybody.
        let _turn = self.reviews.acquire().await;
        self.reviewer.review(&token).await
    }
}

/// What to do about versions that have nothing in common.
fn apart(own: Versions, theirs: Versions, hello: &Hello) -> String {
    let older = if theirs.newest() < own.oldest() { "node's" } else { "controller's" };
    format!(
        "the node's driver {:?} speaks protocol {theirs}, the controller's {} speaks {own}: update the {older} driver",
        hello.driver_version,
        env!("CARGO_PKG_VERSION"),
    )
}
