use quarry::link::{Certificate, SERVER_NAME};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A CA of a cluster.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "quarry");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// What nodes are to trust.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// A controller's certificate.
    pub(super) fn issue(&self) -> Certificate {
        self.issue_for(SERVER_NAME)
    }

    pub(super) fn issue_for(&self, name: &str) -> Certificate {
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        Certificate { chain: vec![leaf.der().to_vec()], key: key.serialize_der() }
    }
}
