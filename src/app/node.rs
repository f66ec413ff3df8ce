use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tower::Layer as _;

use super::driver::{Driver, Machine};
use super::{AppError, Start, announce};
use crate::config::NodeConfig;
use crate::link::{Agent, Dial, StateFeed, TokenFile, Tuning, dial};
use crate::mount;
use crate::proto::quarry::v1::agent_server::AgentServer;
use crate::server::{self, Drained};
use crate::types::TargetPath;

/// Serves the kubelet on the socket, and the controllers over links, until it is asked to stop; then waits for
/// what runs: first for the calls, then for what they left behind.
///
/// # Errors
/// Serving failed.
pub async fn node(config: NodeConfig, start: Start, machine: Machine) -> Result<Drained, AppError> {
    let NodeConfig { driver: config, controllers, ca_directory, token_file, .. } = config;
    let Start { socket, metrics, background, shutdown } = start;
    let driver = Driver::start(&config, machine, background.clone(), &shutdown).await;
    driver.show(&metrics);
    announce(&config);
    tracing::info!(%controllers, "dialling the controllers");
    let (tuning, token) = (Tuning::default(), TokenFile::new(token_file));
    let feed = feed(&driver, tuning.heartbeat, &background, &shutdown);
    let agent = AgentServer::new(Agent::new(feed.clone(), token.clone()));
    let routes = Routes::new(driver.controller()).add_service(driver.stock()).add_service(agent);
    let services = driver.calls.wrap(feed.stamp().layer(routes));
    let node = config.node_name.clone();
    let links = dial(Dial { controllers, node, ca: ca_directory, token, services, tuning }, shutdown.clone());

    let (calls, grace) = (driver.calls.clone(), config.grace_period);
    let served = async {
        let drained = server::serve(socket, driver.routes(), calls, shutdown.clone(), grace).await;
        // Also where it ended by itself: one half of a driver is none.
        shutdown.cancel();
        drained
    };
    let (drained, ()) = tokio::join!(served, within(grace, links, &shutdown));
    driver.end().await;
    Ok(drained?)
}

/// The states that the controllers are shown, and what keeps them fresh.
fn feed(driver: &Driver, every: Duration, background: &TaskTracker, stop: &CancellationToken) -> StateFeed {
    let (shown, kept) = (Arc::clone(&driver.volumes), Arc::clone(&driver.volumes));
    background.spawn(stop.clone().run_until_cancelled_owned(async move { kept.keep_fresh(every).await }));
    StateFeed::start(move || shown.states(), driver.volumes.changes(), every, background, stop.clone())
}

/// Waits for links to close, for at most `grace` from the moment that they are asked to.
async fn within(grace: Duration, links: impl Future<Output = ()>, shutdown: &CancellationToken) {
    let over = async {
        shutdown.cancelled().await;
        sleep(grace).await;
    };
    tokio::select! {
        () = links => {}
        () = over => tracing::warn!("links were left open"),
    }
}

/// Makes sure that what is mounted for pods is seen by the kubelet.
///
/// # Errors
/// It is not, or nobody can say.
pub(super) async fn check_mounts(kubelet: &TargetPath) -> Result<(), AppError> {
    let directory = kubelet.to_path();
    match mount::is_shared(kubelet).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(AppError::NotShared(directory)),
        Err(source) => Err(AppError::Kubelet { directory, source }),
    }
}
