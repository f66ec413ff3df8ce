use std::time::Duration;

use super::{EngineError, Health};
use crate::types::{LvName, VgName, VgUuid};

/// What is said of an open device.
pub const OPEN: &str = "its device is open in some process, or mounted where this driver does not see it (see lsof, fuser, and /proc/*/mountinfo on the node)";

/// Why a volume group did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// It is not on this machine.
    #[error("volume group {0} is not on this machine now")]
    Unseen(VgUuid),

    /// It is in a state in which it takes no change, or cannot be used at all. Nothing was started.
    #[error("volume group {vg} {}: {health}", if .health.serves() { "takes no change now" } else { "cannot be used now" })]
    Unhealthy {
        /// The group.
        vg: VgName,
        /// Its state.
        health: Health,
    },

    /// An earlier change does not end. Nothing was started.
    #[error("volume group {vg} is stuck: a change has been running for over {} s; look for a hanging lvm command or a held lock on this node", .patience.as_secs())]
    Stuck {
        /// The group.
        vg: VgName,
        /// How long a change may take before it counts as stuck.
        patience: Duration,
    },

    /// LVM was asked, and did not do it; what was there before is there still.
    #[error("lvm did not {what} in volume group {vg}: {}", words(.messages))]
    Refused {
        /// The group.
        vg: VgName,
        /// What it was to do.
        what: String,
        /// What LVM said.
        messages: Vec<String>,
    },

    /// An LV cannot be removed while its device is open.
    #[error("{vg}/{lv} is in use: {OPEN}")]
    Open {
        /// The group.
        vg: VgName,
        /// The LV.
        lv: LvName,
    },

    /// LVM could not be asked, or its answer not be read.
    #[error("volume group {vg} cannot be asked")]
    Engine {
        /// The group.
        vg: VgName,
        /// The reason.
        #[source]
        source: EngineError,
    },

    /// The machine could not be searched for volume groups.
    #[error("the search for volume groups failed")]
    Look(#[source] EngineError),
}

fn words(messages: &[String]) -> String {
    if messages.is_empty() { "it gave no reason".to_owned() } else { messages.join("; ") }
}
