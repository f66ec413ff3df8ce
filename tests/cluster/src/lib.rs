//! A real Kubernetes cluster on one machine, for tests: guests of the lab are its nodes.
//!
//! The control plane runs as ordinary processes, and so does CoreDNS; each node is a guest with containerd, a kubelet,
//! kube-proxy and disks of its own. All of it lies in a network that nothing else on the machine can see. Everything is
//! built from one Go module (`go/`), and images are made here: nothing is fetched but Go modules.
//!
//! `make cluster-up` leaves a cluster running, to look around in; `make cluster` runs the scenarios in one of their own.
//! A scenario is a function that gets a [`Cluster`]: it applies manifests in a [`Space`] and waits for what comes of
//! them, and does to a [`Node`] what happens to nodes.
//!
//! | module | what it owns |
//! |---|---|
//! | `programs` | building what the cluster runs |
//! | `images` | container images, and the disk that holds them |
//! | `namespaces`, `keeper` | the process that a cluster lives and dies with |
//! | `cluster` | a cluster's start, and its parts: `network`, `credentials`, `control_plane`, `node` |
//! | `guest` | what runs inside a guest to make it a node |
//! | `agent` | how a node is asked to do something |
//! | `audit` | what the driver has asked of the API server |
//! | `driver` | Quarry, installed as its manual says |
//! | `space`, `wait` | what scenarios do through the API server |
//! | `scenarios`, `report` | the scenarios, and what came out |
//! | `e2e` | Kubernetes' own tests of storage drivers |

#![expect(clippy::disallowed_methods, reason = "a test tool's own programs, none of the driver's")]

mod agent;
mod audit;
pub mod cli;
mod cluster;
mod control_plane;
mod credentials;
mod digest;
pub mod driver;
mod e2e;
mod error;
mod guest;
pub mod images;
mod keeper;
mod namespaces;
mod network;
mod node;
mod options;
mod paths;
mod program;
mod programs;
mod progress;
mod report;
mod scenarios;
mod space;
pub mod wait;

pub use agent::{Output, Service};
pub use cluster::Cluster;
pub use error::Error;
pub use node::Node;
pub use options::{DiskOptions, MOST_NODES, NodeOptions, Options};
pub use paths::Paths;
pub use progress::{Phases, say};
pub use space::{Exec, Space};
