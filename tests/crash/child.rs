//! This test binary as the driver: the real one, with a trap in it (see `trap`).

use std::process::Command;
use std::sync::Arc;

use quarry::app::{Machine, Start, standalone};
use quarry::config::{Config, GroupSettings, Settings};
use quarry::metrics::Metrics;
use quarry::server::Socket;
use quarry::telemetry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::trap::{Trap, Trapped};
use crate::driver::{self, Driver, VG};

/// Set where this binary is to be the driver.
const WANTED: &str = "QUARRY_TRAPPED_DRIVER";

/// Starts this binary again, as a driver with a trap in it.
pub(super) async fn start() -> Driver {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = concat!(module_path!(), "::the_driver").split_once("::").unwrap().1;
    command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]).env(WANTED, "1");
    Driver::launch(command).await
}

#[test]
#[ignore = "no test: other tests start it as their driver"]
fn the_driver() {
    if std::env::var_os(WANTED).is_some() {
        driver::run(serve());
    }
}

/// Serves until it is killed.
async fn serve() {
    let group = GroupSettings { name: VG.to_owned(), reserve: None };
    let variable = |name| std::env::var(name).ok();
    let settings = Settings {
        volume_groups: Some(vec![group]),
        endpoint: variable("CSI_ENDPOINT"),
        log: variable("QUARRY_LOG"),
        ..Settings::default()
    };
    let config = Config::resolve(settings, "lab").unwrap();
    telemetry::start(&config.log_filter, config.log_format).unwrap();
    let socket = Socket::bind(&config.endpoint).unwrap();
    let (background, metrics) = (TaskTracker::new(), Metrics::new("standalone"));
    let real = Machine::local(&config, &background, &metrics).await.unwrap();
    let trap = Arc::new(Trap::default());
    let machine = Machine {
        backend: Arc::new(Trapped { inner: real.backend, trap: Arc::clone(&trap) }),
        programs: Arc::new(Trapped { inner: real.programs, trap }),
    };
    let start = Start { socket, metrics, background, shutdown: CancellationToken::new() };
    standalone(config, start, machine).await.unwrap();
}
