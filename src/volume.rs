//! What happens to a volume: one file per verb.
//!
//! Each verb looks at the real state first and moves it one step on, so that a repeat, a crash or a
//! power cut at any point converges. It knows LVM, file systems and mounts; it knows neither gRPC nor
//! Kubernetes.

mod error;
mod request;

pub use error::VolumeError;
pub use request::{Capacity, CapacityRequest, CreateRequest, Expanded, Usage, VolumeInfo, VolumeUsage};
