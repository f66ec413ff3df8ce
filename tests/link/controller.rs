use std::net::SocketAddr;
use std::sync::Arc;

use quarry::link::{Accept, Certificates, Session, Tuning, accept};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::authority::Authority;
use super::desk::Desk;
use super::soon;

/// A controller's end.
pub(super) struct Controller {
    pub(super) address: SocketAddr,
    pub(super) authority: Authority,
    pub(super) certificates: Certificates,
    pub(super) desk: Desk,
    pub(super) tracker: TaskTracker,
    sessions: mpsc::Receiver<Session>,
    stop: CancellationToken,
    _stopped_at_the_end: DropGuard,
}

impl Controller {
    pub(super) async fn start(tuning: Tuning) -> Self {
        let authority = Authority::new();
        let certificate = authority.issue();
        let controller = Self::start_at("127.0.0.1:0".parse().unwrap(), authority, tuning).await;
        controller.certificates.show(certificate).unwrap();
        controller
    }

    /// With nothing to show yet.
    pub(super) async fn start_at(address: SocketAddr, authority: Authority, tuning: Tuning) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (certificates, desk, tracker) = (Certificates::new(), Desk::new(), TaskTracker::new());
        let stop = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let parts =
            Accept { listener, certificates: certificates.clone(), reviewer: Arc::new(desk.clone()), tuning };
        let sessions = accept(parts, &tracker, stop.clone()).unwrap();
        let _stopped_at_the_end = stop.clone().drop_guard();
        Self { address, authority, certificates, desk, tracker, sessions, stop, _stopped_at_the_end }
    }

    pub(super) async fn session(&mut self) -> Session {
        soon("a link", self.sessions.recv()).await.expect("the controller has stopped")
    }

    /// Stops, and gives the CA back for a successor.
    pub(super) async fn stop(self) -> Authority {
        self.stop.cancel();
        self.tracker.close();
        soon("the controller's end", self.tracker.wait()).await;
        self.authority
    }

    /// Takes a session that is there already.
    pub(super) fn try_session(&mut self) -> Option<Session> {
        self.sessions.try_recv().ok()
    }
}

/// Waits until a link takes no more calls.
pub(super) async fn ended(session: &Session) {
    soon("the link's end", session.ended().cancelled()).await;
}
