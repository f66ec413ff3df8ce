use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::exec::Exec;
use super::follow::follow;
use super::greet::{GreetError, Greeted, Greeter};
use super::lobby::{Lobby, Place};
use super::register::Register;
use super::watched::Watched;
use super::{Certificates, Channel, Reviewer, Session, TlsError, Tuning, renew};
use crate::types::{NodeState, chain};

/// How long accepting rests after it failed. Out of file descriptors it would fail again at once.
const REST: Duration = Duration::from_millis(100);

/// How many links may wait to be taken notice of; further ones wait in their hello.
const UNNOTICED: usize = 64;

/// What accepts links.
pub struct Accept {
    /// Where nodes connect to.
    pub listener: TcpListener,
    /// What the controller shows them.
    pub certificates: Certificates,
    /// Who says which node a token speaks for.
    pub reviewer: Arc<dyn Reviewer>,
    /// Times and bounds.
    pub tuning: Tuning,
}

/// Accepts links until `stop` is cancelled, and gives each once its node is known. A node has one at a
/// time: an older one is closed when a newer one comes. All work runs on `tracker`; at the end all links
/// are closed.
///
/// # Errors
/// TLS cannot be set up.
pub fn accept(
    accept: Accept,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Result<mpsc::Receiver<Session>, TlsError> {
    let (sessions, receiver) = mpsc::channel(UNNOTICED);
    let door = Door {
        tls: accept.certificates.acceptor()?,
        reviewer: accept.reviewer,
        reviews: Semaphore::new(accept.tuning.reviews),
        lobby: Lobby::new(accept.tuning.silent),
        links: Register::default(),
        last: AtomicU64::new(0),
        tuning: accept.tuning,
        tracker: tracker.clone(),
        stop,
        sessions,
    };
    tracker.spawn(Arc::new(door).keep(accept.listener));
    Ok(receiver)
}

struct Door {
    tls: TlsAcceptor,
    reviewer: Arc<dyn Reviewer>,
    reviews: Semaphore,
    lobby: Lobby,
    links: Register,
    last: AtomicU64,
    tuning: Tuning,
    tracker: TaskTracker,
    stop: CancellationToken,
    sessions: mpsc::Sender<Session>,
}

impl Door {
    async fn keep(self: Arc<Self>, listener: TcpListener) {
        while let Some(connection) = self.stop.run_until_cancelled(listener.accept()).await {
            match connection {
                Ok((stream, address)) => {
                    let (door, place) = (Arc::clone(&self), self.lobby.enter());
                    let (stop, link) = (self.stop.clone(), Box::pin(door.receive(stream, address, place)));
                    self.tracker.spawn(stop.run_until_cancelled_owned(link));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(REST).await;
                }
            }
        }
    }

    /// One connection from its first byte to its end.
    async fn receive(self: Arc<Self>, stream: TcpStream, address: SocketAddr, place: Place) {
        let (reviewer, reviews) = (&*self.reviewer, &self.reviews);
        let greeter = Greeter { tls: &self.tls, reviewer, reviews, tuning: &self.tuning };
        // In boxes, here and elsewhere: a task would hold the place of what is over for as long as the link lives, and
        // three times that of what it is handed to run until something else is cancelled.
        let greeted = match Box::pin(greeter.greet(stream, place)).await {
            Ok(greeted) => greeted,
            Err(error) => return refused(address, &error),
        };
        let expires = greeted.reviewed.expires;
        let (states, seen) = watch::channel(None);
        let session = match Box::pin(self.turn_round(greeted, address, seen)).await {
            Ok(session) => session,
            Err(error) => return tracing::info!(%address, error = chain(&error), "a link ended as it began"),
        };
        let gone = session.channel.gone.clone();
        let _closed_at_the_end = gone.clone().drop_guard();
        tracing::info!(node = %session.node, link = session.id, %address, driver = %session.driver_version, version = session.version, "a node is linked");
        self.links.enter(&session);
        tokio::select! {
            () = session.ended.cancelled() => {}
            why = self.hand_out(&session, expires) => session.close(&why),
            why = follow(&session, &states, &self.tuning) => match why {
                Some(why) => session.close(&why),
                None => session.ended.cancel(),
            },
        }
        self.links.leave(&session);
        // A node that stops ends what runs first. Each call has its deadline, and a dead peer answers no ping.
        gone.cancelled().await;
        tracing::info!(node = %session.node, link = session.id, %address, "a link has ended");
    }

    /// Hands the link out and keeps it good. Returns when it must end, with the reason.
    async fn hand_out(&self, session: &Session, expires: SystemTime) -> String {
        if self.sessions.send(session.clone()).await.is_err() {
            return "nobody wants links any more".to_owned();
        }
        renew::keep(session, expires, &*self.reviewer, &self.reviews, &self.tuning).await
    }

    /// Makes the accepting end of the connection the client of HTTP/2.
    async fn turn_round(
        &self,
        greeted: Greeted,
        address: SocketAddr,
        states: watch::Receiver<Option<NodeState>>,
    ) -> hyper::Result<Session> {
        let (gone, ended) = (CancellationToken::new(), CancellationToken::new());
        let exec = Exec { tracker: self.tracker.clone(), gone: gone.clone() };
        let (requests, connection) = http2::Builder::new(exec)
            .timer(TokioTimer::new())
            .keep_alive_interval(self.tuning.ping)
            .keep_alive_timeout(self.tuning.pong)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(Watched::new(greeted.stream, gone.clone())))
            .await?;
        let (end, lost, connection) = (ended.clone().drop_guard(), gone.clone(), Box::pin(connection));
        self.tracker.spawn(async move {
            if let Some(Err(error)) = lost.run_until_cancelled(connection).await {
                tracing::info!(%address, error = chain(&error), "a link failed");
            }
            drop(end);
        });
        let object: Arc<str> = greeted.reviewed.node.into();
        Ok(Session {
            id: self.last.fetch_add(1, Ordering::Relaxed) + 1,
            node: greeted.node,
            object: Arc::clone(&object),
            address,
            version: greeted.version,
            driver_version: greeted.driver_version.into(),
            channel: Channel { requests, node: object, gone },
            states,
            ended,
        })
    }
}

/// Who says nothing may be a health check or a scan of ports; who says the wrong thing is of interest.
fn refused(address: SocketAddr, error: &GreetError) {
    let error_chain = chain(error);
    match error {
        GreetError::Silent(_) | GreetError::Late | GreetError::Crowded => {
            tracing::debug!(%address, error = error_chain, "no link");
        }
        GreetError::Version(_) | GreetError::Token(_) | GreetError::Name(_) | GreetError::Gone(_) => {
            tracing::warn!(%address, error = error_chain, "no link");
        }
    }
}
