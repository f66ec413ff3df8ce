use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::{Driver, Machine};
use super::{AppError, announce};
use crate::config::Config;
use crate::server::{self, Drained, Socket};

/// Serves all three services on `socket` until `shutdown` is cancelled, and waits for what runs:
/// first for the calls, then for what they left behind.
///
/// # Errors
/// Serving failed.
pub async fn standalone(
    config: Config,
    socket: Socket,
    machine: Machine,
    background: TaskTracker,
    shutdown: CancellationToken,
) -> Result<Drained, AppError> {
    let driver = Driver::start(&config, machine, background, &shutdown).await;
    announce(&config);
    let calls = driver.calls.clone();
    let drained = server::serve(socket, driver.routes(), calls, shutdown, config.grace_period).await?;
    driver.end().await;
    Ok(drained)
}
