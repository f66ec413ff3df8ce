//! The controller: against an API server in memory, and over real sockets.

mod api_server;
mod authority;
mod copies;
mod create;
mod election;
mod events;
mod labels;
mod links;
mod lost;
mod orphans;
mod permissions;
mod places;
mod process;
mod real;
mod review;
mod rig;
mod room;
mod rotation;
mod volumes;
mod waiting;

pub(crate) use api_server::{ApiServer, token};
pub(crate) use permissions::PERMITTED;
pub(crate) use process::{Process, command_of, kubeconfig};
pub(crate) use rig::{Replica, at_node, bundle, hasty};
