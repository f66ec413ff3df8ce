use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::tls::provider;

/// The file in the directory: PEM, one certificate or several.
const FILE: &str = "ca.crt";

/// A bundle has a few thousand bytes; what has more than this is something else.
const LONGEST: u64 = 1 << 20;

/// Why a controller could not be told from anybody else.
#[derive(Debug, thiserror::Error)]
pub(super) enum RootsError {
    /// It is not there yet: the directory is that of an optional ConfigMap.
    #[error("{} is not there yet: the first controller writes it when it starts", .0.display())]
    Missing(PathBuf),
    /// There is no certificate in it.
    #[error("{} holds no certificate yet: the first controller writes it when it starts", .0.display())]
    Empty(PathBuf),
    /// It cannot be read.
    #[error("{} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// What is in it is no bundle of certificates.
    #[error("{} is no list of certificates: {why}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The library does not do what it was built for.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// Reads the certificates of the cluster's CA anew, and makes of them what tells its controllers from
/// everybody else.
pub(super) async fn connector(directory: &Path) -> Result<TlsConnector, RootsError> {
    let path = directory.join(FILE);
    let pem = read(&path).await?;
    let roots = roots(&path, &pem)?;
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(RootsError::Setup)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // A resumed session would pass by a bundle that was changed since.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn read(path: &Path) -> Result<Vec<u8>, RootsError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RootsError::Missing(path.to_owned()),
        _ => RootsError::Read { path: path.to_owned(), source },
    };
    let mut pem = Vec::new();
    let file = File::open(path).await.map_err(failed)?;
    file.take(LONGEST).read_to_end(&mut pem).await.map_err(failed)?;
    Ok(pem)
}

fn roots(path: &Path, pem: &[u8]) -> Result<RootCertStore, RootsError> {
    let wrong = |why: String| RootsError::Wrong { path: path.to_owned(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() { Err(RootsError::Empty(path.to_owned())) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority() -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem()
    }

    #[tokio::test]
    async fn a_bundle_is_read_anew_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.crt");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        assert!(matches!(connector(dir.path()).await, Err(RootsError::Missing(_))));
        write("");
        assert!(matches!(connector(dir.path()).await, Err(RootsError::Empty(_))));
        write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        assert!(matches!(connector(dir.path()).await, Err(RootsError::Wrong { .. })));
        write("-----BEGIN CERTIFICATE-----\nAAAA\n");
        assert!(connector(dir.path()).await.is_err());
        write(&format!("# the old one\n{}\n# the new one\n{}", authority(), authority()));
        assert!(connector(dir.path()).await.is_ok());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(connector(dir.path()).await, Err(RootsError::Read { .. })));
    }
}
