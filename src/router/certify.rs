use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Fleet;
use crate::cluster::Leadership;
use crate::cluster::authority::{Authority, Leaf};
use crate::link::{Certificate, Certificates};
use crate::types::chain;

/// How often the authority is looked at.
const ROUND: Duration = Duration::from_secs(600);

/// The first wait after it could not be looked at; every further one is twice as long, up to [`ROUND`].
const RETRY: Duration = Duration::from_secs(2);

/// Keeps a good certificate in `certificates`, opens the fleet with the first one, and as leader keeps the
/// authority. Runs until `stop` is cancelled.
pub async fn certify(
    mut authority: Authority,
    mut leadership: Leadership,
    certificates: Certificates,
    fleet: Arc<Fleet>,
    stop: CancellationToken,
) {
    let mut retry = RETRY;
    loop {
        let led = leadership.holds();
        let wait = match authority.round(led, SystemTime::now()).await {
            Ok(leaf) => {
                leaf.into_iter().for_each(|leaf| show(&certificates, leaf, &fleet));
                retry = RETRY;
                ROUND
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "the authority of the link cannot be kept");
                let wait = retry;
                retry = (retry * 2).min(ROUND);
                wait
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(wait) => {}
            () = gained(&mut leadership, led) => {}
        }
    }
}

/// Waits until this replica is the leader and was not before.
async fn gained(leadership: &mut Leadership, led: bool) {
    while led || !leadership.holds() {
        if !leadership.changed().await {
            std::future::pending().await
        }
    }
}

fn show(certificates: &Certificates, leaf: Leaf, fleet: &Fleet) {
    match certificates.show(Certificate { chain: vec![leaf.certificate], key: leaf.key }) {
        Ok(()) => {
            fleet.open();
            tracing::info!("a new certificate for the link");
        }
        Err(error) => tracing::error!(error = chain(&error), "a certificate for the link cannot be used"),
    }
}
