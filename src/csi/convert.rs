//! From CSI's messages to the words of the house, and back.
//!
//! What is wrong with a message is found here, by the specification's rules for its fields, and the
//! error names the field as the specification does. A value that is well formed but unknown to us, as
//! the id of a volume that another driver made, is not wrong.

mod answer;
mod capability;
mod cluster;
mod create;
mod field;
mod id;
mod node;
mod page;
mod place;
mod question;
mod range;

pub use answer::{capacity, usage, volume};
pub use capability::{BadCapability, capabilities, capability, one_mode};
pub use cluster::{CLUSTER, cluster};
pub use create::{capacity_request, create_request};
pub use field::{path, required};
pub use id::{existing, volume_id};
pub use node::{StageRequest, publish_request, stage_request, volume_at, volume_found_at};
pub use page::{Page, page};
pub use place::{place, places, topology};
pub use question::{Question, question};
pub use range::{range, wanted};

#[cfg(test)]
mod tests;
