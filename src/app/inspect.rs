use std::io::{self, Write as _};
use std::num::NonZeroUsize;

use serde::Serialize;
use tokio::runtime::Runtime;

use super::AppError;
use crate::config::{LookConfig, LookFlags, ManifestsConfig, Policy, VolumesFlags};
use crate::inspect::{
    GroupRow, Machine, ReclaimPolicy, Scope, VolumeRow, check, groups, manifests, table, volumes,
};
use crate::telemetry::{self, LogFormat};

/// What is logged of a look: what LVM could not read, say.
const LOG: &str = "warn";

/// Prints the volumes of this machine, or their manifests.
pub(super) fn show_volumes(flags: VolumesFlags) -> Result<(), AppError> {
    let (wanted, look) = flags.split();
    let config = LookConfig::load(look)?;
    let (machine, rows) = looked(&config, async |machine| volumes(machine).await)?;
    let text = match wanted {
        Some(ManifestsConfig { storage_class, reclaim_policy }) => {
            let policy = match reclaim_policy {
                Policy::Retain => ReclaimPolicy::Retain,
                Policy::Delete => ReclaimPolicy::Delete,
            };
            manifests(&rows, &storage_class, policy)
                .map_err(|error| AppError::Output(io::Error::other(error)))?
        }
        None if config.json => json(&rows)?,
        None => table(VolumeRow::HEADING, rows.iter().map(VolumeRow::cells)),
    };
    print(&text)?;
    all_read(&machine)
}

/// Prints the volume groups of this machine.
pub(super) fn show_groups(flags: LookFlags) -> Result<(), AppError> {
    let config = LookConfig::load(flags)?;
    let (_, rows) = looked(&config, async |machine| groups(machine))?;
    let cells = || table(GroupRow::HEADING, rows.iter().map(GroupRow::cells));
    print(&if config.json { json(&rows)? } else { cells() })
}

/// Prints what is unhealthy on this machine, and what to do.
pub(super) fn show_check(flags: LookFlags) -> Result<(), AppError> {
    let config = LookConfig::load(flags)?;
    let (machine, findings) = looked(&config, async |machine| check(machine).await)?;
    let count = findings.iter().filter(|finding| finding.unhealthy).count();
    if config.json {
        print(&json(&findings)?)?;
    } else {
        let groups = machine.count();
        let mut text: String = findings.iter().map(|finding| finding.lines()).collect();
        text +=
            &format!("{count} unhealthy, {} to note; groups looked at: {groups}\n", findings.len() - count);
        print(&text)?;
    }
    if count == 0 { Ok(()) } else { Err(AppError::Unhealthy(count)) }
}

/// What a command for people runs on, once its log is there.
pub(super) fn start() -> Result<Runtime, AppError> {
    let filter = LOG.parse().map_err(|error| AppError::Start(io::Error::other(error)))?;
    telemetry::start(&filter, LogFormat::Text)?;
    super::runtime(NonZeroUsize::MIN).map_err(AppError::Start)
}

fn looked<T>(config: &LookConfig, then: impl AsyncFnOnce(&Machine) -> T) -> Result<(Machine, T), AppError> {
    let runtime = start()?;
    let scope = Scope {
        selections: config.volume_groups.clone(),
        run_directory: config.run_directory.clone(),
        lvm_locking_directory: config.lvm_locking_directory.clone(),
    };
    let result = runtime.block_on(async {
        let machine = Machine::look(&scope).await?;
        let what = then(&machine).await;
        Ok((machine, what))
    });
    // A file system that does not answer holds a thread for ever.
    runtime.shutdown_timeout(super::LAST_CALLS);
    result
}

/// What is not shown must not pass for absent.
fn all_read(machine: &Machine) -> Result<(), AppError> {
    let unread: Vec<String> = machine.unread().map(|(vg, why)| format!("{vg}: {why}")).collect();
    if unread.is_empty() { Ok(()) } else { Err(AppError::Unread(unread.join("; "))) }
}

fn json(rows: &impl Serialize) -> Result<String, AppError> {
    let text = serde_json::to_string_pretty(rows).map_err(|error| AppError::Output(error.into()))?;
    Ok(text + "\n")
}

pub(super) fn print(text: &str) -> Result<(), AppError> {
    io::stdout().lock().write_all(text.as_bytes()).map_err(AppError::Output)
}
