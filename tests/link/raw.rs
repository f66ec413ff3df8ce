use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use prost::Message as _;
use quarry::link::{SERVER_NAME, Versions};
use quarry::proto::quarry::v1::{Hello, Welcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::soon;

/// A node that a test speaks for itself, word by word.
pub(super) struct Raw {
    pub(super) stream: TlsStream<TcpStream>,
}

pub(super) fn hello(token: &str, versions: Versions) -> Hello {
    Hello {
        oldest_version: versions.oldest(),
        newest_version: versions.newest(),
        driver_version: "9.9.9".to_owned(),
        token: token.to_owned(),
    }
}

impl Raw {
    pub(super) async fn connect(address: SocketAddr, ca: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(SERVER_NAME).unwrap();
        let stream = soon("TLS", TlsConnector::from(Arc::new(config)).connect(name, stream)).await?;
        Ok(Self { stream })
    }

    /// The certificate that the controller showed.
    pub(super) fn shown(&self) -> Vec<u8> {
        self.stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    pub(super) async fn say(&mut self, hello: &Hello) -> io::Result<Welcome> {
        let bytes = hello.encode_to_vec();
        self.send(&u32::try_from(bytes.len()).unwrap().to_be_bytes()).await?;
        self.send(&bytes).await?;
        self.hear().await
    }

    pub(super) async fn hear(&mut self) -> io::Result<Welcome> {
        soon("an answer to hello", async {
            let length = self.stream.read_u32().await?;
            let mut bytes = vec![0; length.try_into().unwrap()];
            self.stream.read_exact(&mut bytes).await?;
            Ok(Welcome::decode(bytes.as_slice()).unwrap())
        })
        .await
    }
}
