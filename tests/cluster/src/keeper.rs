//! The process that a cluster lives and dies with: the first one in its process table, in its network.
//!
//! `front` starts it and waits; `inside` is what runs in it. They hold the two ends of a pipe, the lifeline: when the
//! front dies before the cluster is handed over to nobody, the cluster goes down.

mod front;
mod inside;
mod state;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::e2e::Work;
use crate::options::Options;

pub(crate) use front::{build, build_suite, down, run, up};
pub(crate) use inside::main as inside;
pub(crate) use state::State;

/// What the keeper is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) options: Options,
    /// The disk that the nodes' own disks are copies of.
    pub(crate) disk: PathBuf,
    pub(crate) purpose: Purpose,
}

/// What the cluster is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To stay until somebody takes it down.
    Stay,
    /// To run scenarios and go down; all if none is named.
    Run(Vec<String>),
    /// To run specs of Kubernetes' own suite and go down.
    Suite(Work),
}
