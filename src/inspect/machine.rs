use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::device::Dm;
use crate::exec::{Host, MissingPrograms, Program, Programs};
use crate::lvm::{
    EngineError, EngineKind, Group, GroupError, Groups, Health, LocalBackend, LocalOptions, LvRow, Selection,
    Settings, View,
};
use crate::types::{Bytes, Owner, VgName, VgUuid, chain};

/// How long what looked may take to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// What to look at.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The groups that a driver here uses; `None` where nobody says, so that all groups count.
    pub selections: Option<Vec<Selection>>,
    /// The driver's directory for what need not outlive a reboot.
    pub run_directory: PathBuf,
    /// LVM's lock directory.
    pub lvm_locking_directory: PathBuf,
}

/// A machine that cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// A program that is needed is missing.
    #[error(transparent)]
    Programs(#[from] MissingPrograms),
    /// LVM does not work here.
    #[error("cannot use LVM")]
    Lvm(#[from] EngineError),
    /// LVM does not tell which groups there are.
    #[error(transparent)]
    Look(#[from] GroupError),
}

/// The machine at one moment.
pub struct Machine {
    /// The groups that a driver uses here, and others that hold volumes of one.
    pub(super) groups: Vec<Seen>,
    /// What is wanted and was not found, in words.
    pub(super) absent: Vec<String>,
    pub(super) dm: Dm,
}

/// A group, as it was seen.
pub(super) struct Seen {
    pub(super) uuid: VgUuid,
    pub(super) name: VgName,
    /// Whether new volumes are made in it.
    pub(super) chosen: bool,
    pub(super) reserve: Bytes,
    pub(super) health: Health,
    /// What is in it, or why that cannot be told.
    pub(super) view: Result<Arc<View>, String>,
}

impl Machine {
    /// Looks at this machine. Must be called on a runtime.
    ///
    /// # Errors
    /// LVM cannot be asked at all. A group that cannot be read is no error: it is shown so.
    pub async fn look(scope: &Scope) -> Result<Self, InspectError> {
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let options = LocalOptions {
            kind: EngineKind::Process,
            run_dir: scope.run_directory.join("lvm"),
            locking_dir: scope.lvm_locking_directory.clone(),
            ..LocalOptions::default()
        };
        let host = Host::new(Programs::find(&Program::LOOK)?);
        let backend = LocalBackend::start(host, tracker.clone(), options).await?;
        let chosen = scope.selections.clone();
        let groups =
            Groups::new(Arc::new(backend), settings(chosen.as_deref()), tracker.clone(), stop.clone());
        groups.rescan().await?;
        let mut seen = Vec::new();
        for group in groups.all() {
            seen.extend(see(&group, chosen.as_deref()).await);
        }
        // What ran LVM clears its files away.
        groups.rest();
        stop.cancel();
        tracker.close();
        let _ = tokio::time::timeout(FAREWELL, tracker.wait()).await;
        let absent = absent(chosen.as_deref().unwrap_or_default(), &seen);
        seen.retain(|group| group.chosen || group.holds_volumes());
        Ok(Self { groups: seen, absent, dm: Dm::new(scope.run_directory.join("nodes")) })
    }

    /// How many groups were looked at.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// The groups that could not be read, and why.
    pub fn unread(&self) -> impl Iterator<Item = (&VgName, &str)> {
        self.groups.iter().filter_map(|group| Some((&group.name, group.view.as_ref().err()?.as_str())))
    }
}

/// All groups are looked at, since one whose name is not chosen any more can still hold volumes.
fn settings(chosen: Option<&[Selection]>) -> Settings {
    let mut selections = chosen.unwrap_or_default().to_vec();
    selections.extend("*".parse().map(|pattern| Selection { pattern, reserve: Bytes::ZERO }));
    // Nothing is changed here, so there is nothing to be patient with or to back up.
    Settings { selections, patience: Duration::MAX, backup_delay: Duration::MAX }
}

async fn see(group: &Arc<Group>, chosen: Option<&[Selection]>) -> Option<Seen> {
    let (name, health) = (group.name()?, group.health().ok()?);
    let view = group.view().await.map_err(|error| chain(&error));
    let chosen = chosen.is_none_or(|chosen| chosen.iter().any(|one| one.pattern.matches(&name)));
    Some(Seen { uuid: group.uuid().clone(), name, chosen, reserve: group.reserve(), health, view })
}

impl Seen {
    fn holds_volumes(&self) -> bool {
        let ours = |lv: &LvRow| !matches!(lv.owner(), Ok(Owner::Foreign));
        self.view.as_ref().is_ok_and(|view| view.lvs().any(ours))
    }
}

/// The chosen names that no group has.
fn absent(chosen: &[Selection], seen: &[Seen]) -> Vec<String> {
    let found = |selection: &&Selection| seen.iter().any(|group| selection.pattern.matches(&group.name));
    chosen
        .iter()
        .filter(|selection| !found(selection))
        .map(|selection| selection.pattern.to_string())
        .collect()
}
