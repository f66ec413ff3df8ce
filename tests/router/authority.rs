//! The authority: who makes it, how it is followed by another, and what nodes hold of it meanwhile.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarry::cluster::authority::{Authority, AuthorityError, Leaf, Names};
use serde_json::{Value, json};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
use tokio_rustls::rustls::{self, RootCertStore};

use super::api_server::{ApiServer, Fault};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const SECRETS: &str = "/api/v1/namespaces/quarry/secrets";
const MAPS: &str = "/api/v1/namespaces/quarry/configmaps";

fn authority(server: &ApiServer) -> Authority {
    Authority::new(&server.cluster(), Names { secret: "quarry-ca".into(), config_map: "quarry-ca".into() })
}

/// What nodes have mounted.
fn bundle(server: &ApiServer) -> String {
    let map = server.get(MAPS, "quarry-ca").unwrap();
    map["data"]["ca.crt"].as_str().unwrap_or_default().to_owned()
}

fn count(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

/// Whether a node that holds the bundle trusts the certificate, by its own clock.
fn trusts(bundle: &str, leaf: &Leaf, now: SystemTime) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider())).build();
    let name = ServerName::try_from("quarry-controller").unwrap();
    let now = UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap());
    let leaf = CertificateDer::from(leaf.certificate.clone());
    verifier.unwrap().verify_server_cert(&leaf, &[], &name, &[], now).map(drop)
}

#[tokio::test]
async fn the_first_controller_fills_what_the_chart_made_empty() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let leaf = authority(&server).round(false, now).await.unwrap().unwrap();
    assert_eq!(count(&bundle(&server)), 1);
    trusts(&bundle(&server), &leaf, now).unwrap();
    assert!(!bundle(&server).contains("PRIVATE"));
    let made = server.asked().iter().any(|asked| asked.method == "POST");
    assert!(!made, "nothing is made, only filled");
}

#[tokio::test]
async fn two_controllers_that_start_at_once_share_one_authority() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let (mut a, mut b) = (authority(&server), authority(&server));
    let (a, b) = tokio::join!(a.round(true, now), b.round(false, now));
    assert_eq!(count(&bundle(&server)), 1);
    for leaf in [a.unwrap().unwrap(), b.unwrap().unwrap()] {
        trusts(&bundle(&server), &leaf, now).unwrap();
    }
}

#[tokio::test]
async fn a_node_whose_clock_lags_trusts_a_new_controller() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let leaf = authority(&server).round(false, now).await.unwrap().unwrap();
    trusts(&bundle(&server), &leaf, now - HOUR + Duration::from_secs(60)).unwrap();
    trusts(&bundle(&server), &leaf, now - 2 * HOUR).unwrap_err();
}

#[tokio::test]
async fn a_controller_that_ends_between_its_two_writes_is_finished_by_another() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    server.fault("PUT", "configmaps", Fault::Code(500));
    authority(&server).round(false, now).await.unwrap_err();
    server.heal();
    let leaf = authority(&server).round(false, now).await.unwrap().unwrap();
    trusts(&bundle(&server), &leaf, now).unwrap();
}

#[tokio::test]
async fn a_certificate_is_renewed_long_before_its_end() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let mut authority = authority(&server);
    let first = authority.round(true, now).await.unwrap().unwrap();
    assert!(authority.round(true, now + DAY).await.unwrap().is_none(), "it is good");
    let second = authority.round(true, now + 2 * DAY).await.unwrap().unwrap();
    trusts(&bundle(&server), &first, now + 6 * DAY).unwrap();
    trusts(&bundle(&server), &first, now + 8 * DAY).unwrap_err();
    trusts(&bundle(&server), &second, now + 8 * DAY).unwrap();
}

#[tokio::test]
async fn an_authority_is_followed_by_another_and_at_no_time_is_a_controller_not_trusted() {
    let (server, start) = (ApiServer::new(), SystemTime::now());
    let (mut leader, mut other) = (authority(&server), authority(&server));
    let mut leaves = (None, None);
    // A node's copy lags behind by as long as it may.
    let (mut before, mut sizes) = (String::new(), Vec::new());
    let round = Duration::from_secs(1200);
    let due = start + 2 * YEAR;
    for now in (0..600).map(|n| due - HOUR + n * round) {
        let held = bundle(&server);
        for (authority, leads, leaf) in
            [(&mut leader, true, &mut leaves.0), (&mut other, false, &mut leaves.1)]
        {
            if let Some(new) =
                authority.round(leads, if held.is_empty() { start } else { now }).await.unwrap()
            {
                *leaf = Some(new);
            }
        }
        if !before.is_empty() {
            trusts(&before, leaves.0.as_ref().unwrap(), now).unwrap();
            trusts(&before, leaves.1.as_ref().unwrap(), now).unwrap();
        }
        before = held;
        sizes.push(count(&bundle(&server)));
    }
    sizes.dedup();
    assert_eq!(sizes, [1, 2, 1], "both are there for a while");
}

#[tokio::test]
async fn only_the_leader_rotates() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let mut other = authority(&server);
    other.round(false, now).await.unwrap();
    other.round(false, now + 2 * YEAR + DAY).await.unwrap();
    assert_eq!(count(&bundle(&server)), 1);
}

#[tokio::test]
async fn a_bundle_that_somebody_changed_is_mended() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let mut authority = authority(&server);
    authority.round(false, now).await.unwrap();
    let whole = bundle(&server);
    server.put(MAPS, json!({"metadata": {"name": "quarry-ca"}}));
    authority.round(false, now).await.unwrap();
    assert_eq!(bundle(&server), whole);
}

#[tokio::test]
async fn an_authority_that_ended_while_no_controller_ran_is_replaced() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    authority(&server).round(true, now).await.unwrap();
    let late = now + 4 * YEAR;
    assert!(matches!(authority(&server).round(false, late).await, Err(AuthorityError::Time(_))));
    let leaf = authority(&server).round(true, late).await.unwrap().unwrap();
    trusts(&bundle(&server), &leaf, late).unwrap();
}

#[tokio::test]
async fn what_another_release_stored_is_left_alone() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    authority(&server).round(true, now).await.unwrap();
    let mut secret = server.get(SECRETS, "quarry-ca").unwrap();
    // Base64 of {"version":2}, and of something that is no JSON.
    for text in ["eyJ2ZXJzaW9uIjoyfQ==", "bm9uc2Vuc2U="] {
        secret["data"]["authorities.json"] = json!(text);
        server.put(SECRETS, secret.clone());
        let error = authority(&server).round(true, now).await.unwrap_err();
        assert!(error.to_string().contains("quarry-ca"), "{error}");
        assert_eq!(server.get(SECRETS, "quarry-ca").unwrap()["data"]["authorities.json"], text);
    }
}

#[tokio::test]
async fn no_message_shows_a_key() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    let mut authority = authority(&server);
    let leaf = authority.round(true, now).await.unwrap();
    let mut secret = server.get(SECRETS, "quarry-ca").unwrap();
    let state = secret["data"]["authorities.json"].as_str().unwrap().to_owned();
    // The answer cannot be parsed, and what is in it must not be told.
    secret["data"]["authorities.json"] = Value::Array(vec![json!(state)]);
    server.put(SECRETS, secret);
    let error = authority.round(true, now).await.unwrap_err();
    let shown = format!("{error:?} {error} {leaf:?} {authority:?}");
    assert!(!shown.contains(&state[..16]) && shown.contains("makes no sense"), "{shown}");
}
