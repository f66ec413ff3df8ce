use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use super::Socket;

/// How long accepting rests after it failed. Out of file descriptors it would fail again at once, and
/// a loop without a pause takes a whole processor.
const REST: Duration = Duration::from_millis(100);

/// The connections that come in on a socket. Dropping it closes the socket and removes its file.
pub(super) struct Accept {
    socket: Socket,
    rest: Option<Pin<Box<Sleep>>>,
}

impl Accept {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, rest: None }
    }
}

impl Stream for Accept {
    type Item = io::Result<UnixStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(rest) = &mut self.rest {
                ready!(rest.as_mut().poll(cx));
                self.rest = None;
            }
            match ready!(self.socket.listener.poll_accept(cx)) {
                Ok((stream, _)) => return Poll::Ready(Some(Ok(stream))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.rest = Some(Box::pin(sleep(REST)));
                }
            }
        }
    }
}
