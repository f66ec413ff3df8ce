use std::path::Path;

use super::process;
use crate::exec::{Effect, ExecError, Host, Runner, run_ok};

/// Settings of the host that could hide the answer.
const PLAIN: &str = "log/silent=0 log/verbose=0";

/// The name by which LVM knows this machine, by the configuration in `host_config` (lvmsystemid(7)).
/// `None` where it has none, or where there is no such configuration.
///
/// # Errors
/// LVM could not be asked, or its configuration makes no sense.
pub(super) async fn ask(host: &Host, host_config: &Path) -> Result<Option<String>, ExecError> {
    if !matches!(tokio::fs::try_exists(host_config.join("lvm.conf")).await, Ok(true)) {
        return Ok(None);
    }
    let limit = std::time::Duration::from_secs(30);
    let words = ["systemid", "--config", PLAIN];
    let output =
        run_ok(host as &dyn Runner, process::invocation(host_config, Effect::Query(limit), words)).await?;
    Ok(read(&output.text()))
}

fn read(text: &str) -> Option<String> {
    let id = text.lines().find_map(|line| line.split_once("system ID:")).map(|(_, id)| id.trim());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_id_is_found_whatever_stands_before_it() {
        assert_eq!(read("  system ID: node-1\n"), Some("node-1".to_owned()));
        assert_eq!(read("a line\nlvm  >> system ID: node-1\n"), Some("node-1".to_owned()));
        assert_eq!(read("  system ID: \n"), None);
        assert_eq!(read(""), None);
    }
}
