//! The cluster's own certificates, and what each of its parts needs to speak to the API server.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::json;

use crate::paths::{make_folder, write};
use crate::{Error, network};

/// The port of the API server.
pub(crate) const API_PORT: u16 = 6443;

/// Signs certificates for one cluster, which keeps them in one folder.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    /// A new authority; what another one has signed is worth nothing to it.
    pub(crate) fn create(folder: PathBuf) -> Result<Authority, Error> {
        let mut params = params("quarry-lab-ca", None, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        make_folder(&folder)?;
        let authority = Authority { issuer, folder };
        write(&authority.certificate(), authority.issuer.pem())?;
        Ok(authority)
    }

    /// Its own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The key that service accounts' tokens are signed with, and the one that they are checked with.
    pub(crate) fn service_accounts(&self) -> Result<(PathBuf, PathBuf), Error> {
        let key = KeyPair::generate()?;
        let path = |extension| self.folder.join(format!("service-accounts.{extension}"));
        let (private, public) = (path("key"), path("pub"));
        write(&private, key.serialize_pem())?;
        write(&public, key.public_key_pem())?;
        Ok((private, public))
    }

    /// A certificate for a server at these addresses, and its key.
    pub(crate) fn server(&self, name: &str, at: &[&str], ips: &[Ipv4Addr]) -> Result<Pair, Error> {
        let mut params = params(name, None, at)?;
        params.subject_alt_names.extend(ips.iter().map(|ip| SanType::IpAddress(IpAddr::V4(*ip))));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(name, params)
    }

    /// A certificate by which the API server knows a user and its group, and its key. `file` names the files.
    pub(crate) fn client(&self, file: &str, user: &str, group: Option<&str>) -> Result<Pair, Error> {
        let mut params = params(user, group, &[])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(file, params)
    }

    /// A kubeconfig with a certificate of its own.
    pub(crate) fn kubeconfig(&self, file: &str, user: &str, group: Option<&str>) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{file}.kubeconfig"));
        let pair = self.client(&format!("{file}-client"), user, group)?;
        write_kubeconfig(&path, &self.certificate(), &pair)?;
        Ok(path)
    }

    fn sign(&self, file: &str, params: CertificateParams) -> Result<Pair, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let path = |extension| self.folder.join(format!("{file}.{extension}"));
        let pair = Pair { certificate: path("crt"), key: path("key") };
        write(&pair.certificate, certificate.pem())?;
        write(&pair.key, key.serialize_pem())?;
        Ok(pair)
    }
}

/// A certificate and its key, in files.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

fn params(name: &str, group: Option<&str>, at: &[&str]) -> Result<CertificateParams, Error> {
    let at: Vec<_> = at.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(at)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// JSON, which is YAML too. The paths in it hold on the host and on the nodes, which see the host's files.
fn write_kubeconfig(path: &Path, authority: &Path, pair: &Pair) -> Result<(), Error> {
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "lab",
            "cluster": {
                "server": format!("https://{}:{API_PORT}", network::GATEWAY),
                "certificate-authority": authority,
            },
        }],
        "users": [{
            "name": "user",
            "user": { "client-certificate": pair.certificate, "client-key": pair.key },
        }],
        "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": "user" } }],
        "current-context": "lab",
    });
    write(path, text.to_string())
}
