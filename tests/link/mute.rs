use std::net::SocketAddr;
use std::sync::Arc;

use prost::Message as _;
use quarry::link::Certificate;
use quarry::proto::quarry::v1::Welcome;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::authority::Authority;

/// A controller that welcomes whoever comes, and then says nothing.
pub(super) struct Mute {
    pub(super) address: SocketAddr,
    welcomed: watch::Sender<usize>,
    _stopped_at_the_end: DropGuard,
}

impl Mute {
    pub(super) async fn start(authority: &Authority) -> Self {
        let Certificate { chain, key } = authority.issue();
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivatePkcs8KeyDer::from(key).into())
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (welcomed, stop) = (watch::Sender::new(0), CancellationToken::new());
        let counter = welcomed.clone();
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(async move {
            let mut held = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                held.push(welcome(&tls, stream).await);
                counter.send_modify(|count| *count += 1);
            }
        }));
        Self { address, welcomed, _stopped_at_the_end: stop.drop_guard() }
    }

    /// Counts those who were welcomed.
    pub(super) fn welcomed(&self) -> watch::Receiver<usize> {
        self.welcomed.subscribe()
    }
}

async fn welcome(tls: &TlsAcceptor, stream: TcpStream) -> impl Send + use<> {
    let mut stream = tls.accept(stream).await.unwrap();
    let length = stream.read_u32().await.unwrap();
    stream.read_exact(&mut vec![0; length.try_into().unwrap()]).await.unwrap();
    let bytes = Welcome { version: 1, ..Default::default() }.encode_to_vec();
    stream.write_u32(bytes.len().try_into().unwrap()).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.flush().await.unwrap();
    stream
}
