use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::types::{ClusterId, chain};

/// The wait after the cluster could not be asked.
const RETRY: Duration = Duration::from_secs(10);

/// Finds out which cluster this is. It never changes.
pub async fn identify(cluster: Cluster, identity: watch::Sender<Option<ClusterId>>) {
    loop {
        match cluster.identity().await.map(|uid| uid.parse()) {
            Ok(Ok(id)) => return drop(identity.send_replace(Some(id))),
            Ok(Err(error)) => tracing::warn!(error = chain(&error), "the cluster's UID"),
            Err(error) => tracing::warn!(error = chain(&error), "the cluster's UID cannot be read"),
        }
        sleep(RETRY).await;
    }
}
