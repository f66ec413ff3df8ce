use std::fmt;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use super::state::{Signer, seconds};
use super::{LEAF_LIFE, LIFE, SERVER_NAME, SKEW};

/// A certificate that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate cannot be made")]
pub struct IssueError(#[from] rcgen::Error);

/// A controller's certificate and its key.
#[derive(Clone)]
pub struct Leaf {
    /// In DER.
    pub certificate: Vec<u8>,
    /// In PKCS #8 DER. Never shown.
    pub key: Vec<u8>,
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").finish_non_exhaustive()
    }
}

/// Makes an authority.
pub(super) fn signer(now: SystemTime) -> Result<Signer, IssueError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let (from, to) = (now - SKEW, now + LIFE);
    let name = format!("Quarry link CA {}", seconds(now));
    let mut params = authority_params(&name);
    (params.not_before, params.not_after) = (from.into(), to.into());
    Ok(Signer {
        certificate: params.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
        name,
        not_before: seconds(from),
        not_after: seconds(to),
    })
}

/// What an authority's certificate says but for its time. To sign, no more of it is needed.
fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Makes a key, and has it signed. The certificate begins with its authority's, so that a clock which
/// lags does not matter; it never outlives it.
pub(super) fn leaf(signer: &Signer, now: SystemTime) -> Result<Leaf, IssueError> {
    let authority = Issuer::new(authority_params(&signer.name), KeyPair::from_pem(&signer.key)?);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, SERVER_NAME);
    params.not_before = (SystemTime::UNIX_EPOCH + Duration::from_secs(signer.not_before)).into();
    params.not_after = signer.not_after().min(now + LEAF_LIFE).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &authority)?;
    Ok(Leaf { certificate: certificate.der().to_vec(), key: key.serialize_der() })
}
