use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ServerConfig};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate or its key cannot be used.
    #[error("the certificate cannot be used")]
    Certificate(#[source] rustls::Error),
    /// The library does not do what it was built for.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// A certificate with its key, for [`SERVER_NAME`](super::SERVER_NAME).
pub struct Certificate {
    /// In DER: the certificate itself first, then those that lead to the CA's, which may be left out.
    pub chain: Vec<Vec<u8>>,
    /// Its private key, in PKCS #8 DER.
    pub key: Vec<u8>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

/// The certificate that a controller shows, which can be changed while links are accepted: those that
/// are dialled later see the new one. Clones are the same. While it is empty, nobody gets in.
#[derive(Debug, Clone, Default)]
pub struct Certificates(Arc<Slot>);

#[derive(Debug, Default)]
struct Slot(RwLock<Option<Arc<CertifiedKey>>>);

impl Certificates {
    /// Nothing to show yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows this certificate from now on.
    ///
    /// # Errors
    /// It cannot be read, or the key is not its own; the one before stays.
    pub fn show(&self, certificate: Certificate) -> Result<(), TlsError> {
        let chain = certificate.chain.into_iter().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certificate.key));
        let usable = CertifiedKey::from_der(chain, key, &provider()).map_err(TlsError::Certificate)?;
        *self.0.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(usable));
        Ok(())
    }

    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let slot = Arc::clone(&self.0);
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
        let builder = builder.map_err(TlsError::Setup)?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(slot);
        // A resumed session would pass by a CA that was changed since.
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Slot {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
