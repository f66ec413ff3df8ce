use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::device::DeviceError;
use crate::exec::ExecError;
use crate::lvm::{Full, GroupError};
use crate::types::{
    Bytes, CsiName, FsType, LvName, ParseError, RangeError, VgName, VgUuid, VolumeId, VolumeMode,
    VolumeState, WantedMode,
};

/// Why something could not be done for a volume. The words are for the reader of `kubectl describe`:
/// what was asked, what was found, what to do.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The group was seen whole, and the volume is not in it.
    #[error("volume {0} does not exist")]
    NotFound(VolumeId),

    /// The group is not there, so nothing can be said of its volumes. One that was made anew under the same
    /// name is another one: so the message has both.
    #[error("volume group {vg} is not on this machine now: connect its disks, wait for them, or see whether it has a name now that Quarry is not told of; {}", others(.here))]
    VgUnseen {
        /// The group.
        vg: VgUuid,
        /// Those that are there.
        here: Vec<(VgName, VgUuid)>,
    },

    /// Some of it lies on a disk that is not there.
    #[error("volume {id} cannot be used: some of it lies on a disk that is not there")]
    Incomplete {
        /// The volume.
        id: VolumeId,
        /// What is wrong with its group.
        #[source]
        why: Box<GroupError>,
    },

    /// No group may hold the new volume: nothing was started.
    #[error("no volume can be made here: {0}")]
    NoPlace(String),

    /// The group that may hold the new volume cannot be used now: nothing was started.
    #[error("no volume can be made here")]
    Unusable(#[source] GroupError),

    /// The groups that may hold the new volume have no room for it: nothing was started.
    #[error("volume group {vg} has no room for {wanted}: {}", Room { free: *.free, unallocatable: *.unallocatable, reserve: *.reserve, largest: *.largest, full: *.full })]
    NoRoom {
        /// The group with the most room.
        vg: VgName,
        /// What was asked for, in whole extents.
        wanted: Bytes,
        /// What is free there.
        free: Bytes,
        /// What of that lies on disks that take no new extents.
        unallocatable: Bytes,
        /// What is kept for growth.
        reserve: Bytes,
        /// The largest volume that could be made.
        largest: Bytes,
        /// Why none can be made, however much is free.
        full: Option<Full>,
    },

    /// The volume's group has no room for it to grow.
    #[error(
        "volume group {vg} has no room to grow the volume from {size} to {wanted}: {}; ask for less, or add a disk to the group",
        Free { all: *.free, unallocatable: *.unallocatable }
    )]
    NoRoomToGrow {
        /// The group.
        vg: VgName,
        /// The volume's size.
        size: Bytes,
        /// What was asked for, in whole extents.
        wanted: Bytes,
        /// What is free there.
        free: Bytes,
        /// What of that lies on disks that take no new extents.
        unallocatable: Bytes,
    },

    /// No size meets what was asked for.
    #[error(transparent)]
    Range(#[from] RangeError),

    /// The file system that was asked for does not fit on so small a volume.
    #[error(
        "{fs} needs a volume of at least {minimum}, and {asked} is asked for: ask for {minimum}, or for another file system"
    )]
    TooSmall {
        /// The file system.
        fs: FsType,
        /// The size that was asked for, or the most that was allowed.
        asked: Bytes,
        /// What it needs.
        minimum: Bytes,
    },
    /// A volume of that name exists, and is not what was asked for.
    #[error("a volume named {name} exists and differs: {difference}")]
    Exists {
        /// The name.
        name: CsiName,
        /// In what it differs.
        difference: String,
    },

    /// Something of the kind runs for this volume already.
    #[error("{what} is still running: asking again later joins it")]
    Busy {
        /// What runs.
        what: String,
    },

    /// Its device went away in the middle of work with it.
    #[error("volume {id} was changed by others meanwhile: asking again later looks anew")]
    Changed {
        /// The volume.
        id: VolumeId,
        /// What was seen of that.
        #[source]
        why: DeviceError,
    },

    /// It is in use.
    #[error("volume {id} is in use: {by}")]
    InUse {
        /// The volume.
        id: VolumeId,
        /// By what.
        by: String,
    },

    /// The LV is somebody else's.
    #[error("logical volume {vg}/{lv} was not made by Quarry, which leaves it alone")]
    NotOurs {
        /// Its group.
        vg: VgName,
        /// Its name.
        lv: LvName,
    },

    /// The LV's tags cannot be understood.
    #[error("logical volume {vg}/{lv} is left alone: {reason}")]
    Unreadable {
        /// Its group.
        vg: VgName,
        /// Its name.
        lv: LvName,
        /// What is wrong with its tags.
        reason: String,
    },

    /// What is asked for does not fit the volume's state.
    #[error("volume {id} is {state}: {reason}")]
    State {
        /// The volume.
        id: VolumeId,
        /// Its state.
        state: VolumeState,
        /// Why that does not do, and what would.
        reason: String,
    },

    /// The volume is shown in another way than is asked for.
    #[error("volume {id} is made as {is}, and cannot be used as {asked}")]
    WrongMode {
        /// The volume.
        id: VolumeId,
        /// What it is.
        is: VolumeMode,
        /// What it was to be.
        asked: WantedMode,
    },

    /// Its file system cannot be mounted as is asked.
    #[error("volume {id}, a {fs} file system, cannot be mounted so")]
    Options {
        /// The volume.
        id: VolumeId,
        /// Its file system.
        fs: FsType,
        /// Which option it does not have.
        #[source]
        why: ParseError,
    },
    /// It is to be published, and is not staged.
    #[error(
        "volume {id} is not staged at {}: if its mount there is gone, delete all pods of the volume on this node, \
         and it is staged again",
        .path.display()
    )]
    NotStaged {
        /// The volume.
        id: VolumeId,
        /// Where it was to be staged.
        path: PathBuf,
    },

    /// It is published or staged there in another way.
    #[error("volume {id} is at {} already, and differently: {difference}", .path.display())]
    Incompatible {
        /// The volume.
        id: VolumeId,
        /// Where.
        path: PathBuf,
        /// In what it differs.
        difference: String,
    },

    /// It may be published at one place only, and is published at another.
    #[error("volume {id} may be used by one pod only, and is published at {}", .path.display())]
    PublishedElsewhere {
        /// The volume.
        id: VolumeId,
        /// Where it is published.
        path: PathBuf,
    },

    /// Something else is mounted or lies at the path.
    #[error("{} is taken by something that is not volume {id}: {found}", .path.display())]
    TargetTaken {
        /// The volume.
        id: VolumeId,
        /// The path.
        path: PathBuf,
        /// What is there.
        found: String,
    },

    /// It is not at the path that was named.
    #[error("volume {id} is not at {}", .path.display())]
    NotAtPath {
        /// The volume.
        id: VolumeId,
        /// The path.
        path: PathBuf,
    },

    /// What the volume holds is not what it should hold: a person must look.
    #[error("volume {id} holds something that must not be written to: {found}")]
    Content {
        /// The volume.
        id: VolumeId,
        /// What was found, and what to do.
        found: String,
    },

    /// It is mounted, and its file system does not work any more.
    #[error("volume {id} cannot be used: {reason}; {}", remedy(.used.as_deref()))]
    Dead {
        /// The volume.
        id: VolumeId,
        /// How that was seen.
        reason: String,
        /// A path at which it is used, so that it cannot be mounted anew.
        used: Option<PathBuf>,
    },

    /// It is mounted, and its file system does not answer in time.
    #[error(
        "volume {id} cannot be used now: {reason}; its disk has very much to do, or hangs: if this lasts, look at the kernel's log of this node"
    )]
    Silent {
        /// The volume.
        id: VolumeId,
        /// How that was seen.
        reason: String,
    },

    /// Its file system has noted an error, and does not grow before it was checked.
    #[error(
        "the file system of volume {id} has noted an error, so that the kernel does not let it grow: delete all pods of the volume on its node, run e2fsck -f {} there, and start them again",
        .device.display()
    )]
    Unchecked {
        /// The volume.
        id: VolumeId,
        /// A path to its device.
        device: PathBuf,
    },

    /// It could not be prepared.
    #[error("the volume could not be prepared")]
    Preparation(#[source] Arc<VolumeError>),

    /// Its preparation was ended, since it is being deleted.
    #[error("volume {0} is being deleted")]
    Deleting(VolumeId),

    /// The driver is ending.
    #[error("the driver is shutting down: ask again when it is back")]
    ShuttingDown,

    /// The group did not do what was asked.
    #[error(transparent)]
    Group(#[from] GroupError),

    /// A program failed.
    #[error(transparent)]
    Exec(#[from] ExecError),

    /// Something that was read makes no sense.
    #[error(transparent)]
    Parse(#[from] ParseError),

    /// The host did not do what was asked.
    #[error("{what}")]
    Host {
        /// What was tried.
        what: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl VolumeError {
    /// Whether this is the end of work that nobody wants any more, and no failure.
    pub(super) const fn is_an_end(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Deleting(_) | Self::ShuttingDown)
    }

    /// `what` could not be done with the device of a volume.
    pub(super) fn device(id: &VolumeId, what: &str, error: DeviceError) -> Self {
        match error {
            why @ DeviceError::Gone { .. } => Self::Changed { id: id.clone(), why },
            other => Self::host(format!("the device of {id} cannot be {what}"), other),
        }
    }

    /// The host did not do `what`.
    pub fn host(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Host { what: what.into(), source: source.into() }
    }
}

/// The groups that are there instead of another.
fn others(here: &[(VgName, VgUuid)]) -> String {
    if here.is_empty() {
        return "no other that it uses is here".to_owned();
    }
    let here: Vec<String> = here.iter().map(|(name, uuid)| format!("{name} ({uuid})")).collect();
    format!("of those that it uses, here is {}", here.join(", "))
}

/// What is to be done about a dead file system.
fn remedy(used: Option<&Path>) -> String {
    used.map_or_else(
        || {
            "it was mounted anew and died at once: look at the kernel's log and at the disks of this node"
                .to_owned()
        },
        |path| {
            format!(
                "it is mounted anew once nobody uses it any more, and is still used at {}",
                path.display()
            )
        },
    )
}

/// The room in a group, in words that hold every number which explains a refusal.
struct Room {
    free: Bytes,
    unallocatable: Bytes,
    reserve: Bytes,
    largest: Bytes,
    full: Option<Full>,
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.full {
            Some(Full::Metadata) => return f.write_str("LVM's metadata area on its disks is nearly full, and the rest of it is kept for the volumes that are there: remove some, or use another group"),
            Some(Full::Count(count)) => return write!(f, "it has as many logical volumes as it may have, {count}: allow more (vgchange --logicalvolume), remove some, or use another group"),
            None => {}
        }
        Free { all: self.free, unallocatable: self.unallocatable }.fmt(f)?;
        if self.reserve > Bytes::ZERO {
            write!(f, ", {} of them kept in reserve for growth", self.reserve)?;
        }
        write!(f, ", so that {} is the most that can be made", self.largest)
    }
}

/// What is free in a group, in words.
struct Free {
    all: Bytes,
    unallocatable: Bytes,
}

impl std::fmt::Display for Free {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} are free", self.all)?;
        if self.unallocatable > Bytes::ZERO {
            write!(f, ", {} of them on disks that take no new extents (pvchange -x)", self.unallocatable)?;
        }
        Ok(())
    }
}
