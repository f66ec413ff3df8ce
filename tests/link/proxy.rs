use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Bytes go through.
    Forward,
    /// They do not, and nobody is told: a cable was pulled.
    Freeze,
    /// Connections are closed.
    Cut,
}

/// Stands between a node and a controller. What it does to connections, it does to those that it has at
/// the time; later ones go through again.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    mode: watch::Sender<Arc<watch::Sender<Mode>>>,
    connections: watch::Sender<usize>,
    _stopped_at_the_end: DropGuard,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mode = watch::Sender::new(Arc::new(watch::Sender::new(Mode::Forward)));
        let (connections, stop) = (watch::Sender::new(0), CancellationToken::new());
        let (modes, counter) = (mode.clone(), connections.clone());
        let tracker = TaskTracker::new();
        let spawner = tracker.clone();
        tracker.spawn(stop.clone().run_until_cancelled_owned(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let mode = modes.borrow().subscribe();
                counter.send_modify(|count| *count += 1);
                spawner.spawn(pass(from, target, mode));
            }
        }));
        Self { address, mode, connections, _stopped_at_the_end: stop.drop_guard() }
    }

    fn set(&self, mode: Mode) {
        let old = self.mode.send_replace(Arc::new(watch::Sender::new(Mode::Forward)));
        old.send_replace(mode);
        // A connection that is frozen stays so for the rest of the test.
        if mode == Mode::Freeze {
            std::mem::forget(old);
        }
    }

    /// Stops forwarding on the connections that there are, and closes none.
    pub(crate) fn freeze(&self) {
        self.set(Mode::Freeze);
    }

    /// Closes the connections that there are.
    pub(crate) fn cut(&self) {
        self.set(Mode::Cut);
    }

    /// Counts connections.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.connections.subscribe()
    }
}

async fn pass(from: TcpStream, target: SocketAddr, mode: watch::Receiver<Mode>) {
    let Ok(to) = TcpStream::connect(target).await else { return };
    let ((from_in, from_out), (to_in, to_out)) = (from.into_split(), to.into_split());
    let mut cut = mode.clone();
    tokio::select! {
        _ = cut.wait_for(|mode| *mode == Mode::Cut) => {}
        () = async { tokio::join!(copy(from_in, to_out, mode.clone()), copy(to_in, from_out, mode)); } => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let frozen = async { drop(mode.wait_for(|mode| *mode == Mode::Freeze).await) };
        let read = tokio::select! {
            biased;
            () = frozen => None,
            read = from.read(&mut buffer) => Some(read),
        };
        let Some(read) = read else { return std::future::pending().await };
        match read {
            Ok(0) | Err(_) => return drop(to.shutdown().await),
            Ok(read) if to.write_all(&buffer[..read]).await.is_err() => return,
            Ok(_) => {}
        }
    }
}
