//! The LVM engine: typed commands in, typed reports out, one writer per volume group.
//!
//! ```text
//!   Groups ── knows every volume group, and finds new ones            (groups.rs, health.rs, events.rs)
//!     └─ Group ── one volume group: its view, its one writer's turn   (group.rs, seat.rs, turn.rs, view.rs)
//!          └─ Backend, Engine ── the seam: what a machine does for it (backend.rs)
//!               └─ local/ ── the real machine: shell, process, disks  (scripted.rs in tests)
//! ```
//!
//! LVM's metadata is the only database. Decisions come from reported state; exit codes and messages
//! only say that it is time to look. Nothing here knows what a volume is for.

mod backend;
mod changes;
mod command;
mod error;
mod events;
mod group;
mod groups;
mod health;
mod keeper;
mod local;
mod memory;
mod queue;
mod report;
#[cfg(test)]
pub(crate) mod scripted;
mod seat;
mod turn;
mod view;

pub use backend::{Backend, Engine, EngineError, Fingerprint};
pub use command::Command;
pub use error::{GroupError, OPEN};
pub use events::watch;
pub use group::{Group, Intent};
pub use groups::{Groups, Selection, Settings};
pub use health::{Health, Sighting, sightings};
pub use local::{EngineKind, LocalBackend, LocalOptions};
pub use report::{LvRow, PvRow, Reply, SegmentRow, Unallocatable, VgRow};
pub use turn::Turn;
pub use view::{Full, Room, View};
