//! The gRPC services of CSI: a message comes in, a verb of [`volume`](crate::volume) runs, a message
//! goes out.
//!
//! Nothing here knows LVM, mounts or file systems. What can be wrong with a message itself is found
//! here; everything else is the verb's to say, and `status` gives it its code. Requests are never
//! logged: they may hold credentials.

mod capabilities;
mod controller;
pub mod convert;
mod identity;
mod node;
pub(crate) mod span;
pub mod status;
mod stock;

pub use capabilities::{CONTROLLER, NODE, PLUGIN, router as router_capabilities};
pub use controller::Controller;
pub use identity::Identity;
pub use node::Node;
pub use stock::Stock;

/// The driver's name: part of every PersistentVolume that it makes, so it never changes.
pub const DRIVER_NAME: &str = "lvm.csi.quarry";

#[cfg(test)]
mod tests;
