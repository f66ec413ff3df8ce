use super::driver::{Driver, Machine};
use super::{AppError, Start, announce};
use crate::config::Config;
use crate::server::{self, Drained};

/// Serves all three services on the socket until it is asked to stop, and waits for what runs: first for the
/// calls, then for what they left behind.
///
/// # Errors
/// Serving failed.
pub async fn standalone(config: Config, start: Start, machine: Machine) -> Result<Drained, AppError> {
    let Start { socket, metrics, background, shutdown } = start;
    let driver = Driver::start(&config, machine, background, &shutdown).await;
    driver.show(&metrics);
    announce(&config);
    let calls = driver.calls.clone();
    let drained = server::serve(socket, driver.routes(), calls, shutdown, config.grace_period).await?;
    driver.end().await;
    Ok(drained)
}
