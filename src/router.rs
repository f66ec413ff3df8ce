//! The controller role: which node owns what, and passing calls on to it.
//!
//! ```text
//!   csi-provisioner ── unix socket ── Router ── link ── the owner's own Controller service
//!                                       │
//!   links ── states ── Fleet ◀──────────┘        Keeper: labels      Census: this replica's record
//! ```
//!
//! Nothing is kept here but what live links tell, what was asked and answered in the last hour, and which groups
//! several nodes have shown at once: a controller that starts anew knows as much as the old one once its nodes
//! have dialled, but for the last. A call is passed on as it came, and the node's answer is handed back; the
//! codes of what is answered here are in `error`.

mod census;
mod certify;
mod contest;
mod create;
mod disputes;
mod error;
mod fleet;
mod forward;
mod identify;
mod keeper;
mod lost;
mod member;
mod members;
mod names;
mod orphans;
mod pace;
mod place;
mod refusals;
mod review;
mod room;
mod service;
mod sessions;
mod waiting;

pub use census::census;
pub use certify::certify;
pub use fleet::Fleet;
pub use identify::identify;
pub use keeper::Keeper;
pub use lost::Lost;
pub use orphans::Orphans;
pub use pace::Pace;
pub use review::TokenReviewer;
pub use service::{Parts, Router};
pub use sessions::take_in;
pub use waiting::Waiting;
