//! What happens to a volume: one file per verb.
//!
//! Each verb looks at the real state first and moves it one step on, so that a repeat, a crash or a
//! power cut at any point converges. It knows LVM, file systems and mounts; it knows neither gRPC nor
//! Kubernetes.

mod busy;
mod capacity;
mod choice;
mod create;
mod delete;
mod devices;
mod error;
mod expand;
mod found;
mod growth;
mod list;
mod living;
mod lock;
mod paths;
mod preparations;
mod prepare;
mod publish;
mod request;
mod stage;
mod state;
mod take_up;
mod unused;
mod usage;
mod volumes;

pub use error::VolumeError;
pub use growth::serves;
pub use living::health;
pub use paths::places;
pub use prepare::BLANK_AGE;
pub use publish::PublishRequest;
pub use request::{Capacity, CapacityRequest, CreateRequest, Expanded, Usage, VolumeInfo, VolumeUsage};
pub use unused::{Unused, UnusedVolume};
pub use volumes::{Parts, Volumes};

pub use crate::lvm::{EngineError, GroupError};
