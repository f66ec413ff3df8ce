use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::busy::Busy;
use super::living::Bare;
use super::lock::LockDir;
use super::preparations::Preparations;
use crate::device::Dm;
use crate::exec::Runner;
use crate::lvm::Groups;
use crate::mount::Aside;
use crate::types::NodeName;

/// What the verbs work with.
pub struct Volumes {
    pub(super) groups: Arc<Groups>,
    pub(super) programs: Arc<dyn Runner>,
    pub(super) dm: Dm,
    pub(super) node: NodeName,
    pub(super) locks: LockDir,
    pub(super) aside: Aside,
    pub(super) busy: Busy,
    pub(super) bare: Bare,
    pub(super) preparations: Preparations,
    pub(super) tracker: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// What [`Volumes`] is made of.
pub struct Parts {
    /// The volume groups.
    pub groups: Arc<Groups>,
    /// What runs programs.
    pub programs: Arc<dyn Runner>,
    /// The device-mapper devices of this machine.
    pub dm: Dm,
    /// This node.
    pub node: NodeName,
    /// A directory of the host for lock files, which a restart of the driver leaves alone.
    pub lock_dir: PathBuf,
    /// A directory in which mounts are made ready that nobody is to see before.
    pub mount_dir: PathBuf,
    /// Where background work runs.
    pub tracker: TaskTracker,
    /// Tells background work to end.
    pub stop: CancellationToken,
}

impl Volumes {
    /// The verbs, on these parts.
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            groups: parts.groups,
            programs: parts.programs,
            dm: parts.dm,
            node: parts.node,
            locks: LockDir::new(parts.lock_dir),
            aside: Aside::new(parts.mount_dir),
            busy: Busy::default(),
            bare: Bare::default(),
            preparations: Preparations::default(),
            tracker: parts.tracker,
            stop: parts.stop,
        })
    }

    /// This node.
    pub const fn node_name(&self) -> &NodeName {
        &self.node
    }
}
