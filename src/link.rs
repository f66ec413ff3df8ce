//! The wire between node and controller: the node dials, the controller calls.
//!
//! ```text
//!   node                                      controller
//!   dial ── TCP, TLS, Hello ───────────────▶ accept ── Reviewer: whose token is it?
//!        ◀───────────────────────── Welcome ──┘
//!   serve: HTTP/2 server ◀── calls ────────── Session: HTTP/2 client, a Channel for tonic's clients
//! ```
//!
//! Which services a node serves is not decided here, nor what a controller calls: services come in as
//! values, sessions go out. Nothing here knows volumes, LVM or Kubernetes. Tokens and keys are never
//! logged, and no type that holds one shows it.

mod accept;
mod agent;
mod backoff;
mod channel;
mod controllers;
mod dial;
mod exec;
mod feed;
mod follow;
mod frame;
mod greet;
mod hello;
mod lobby;
mod register;
mod renew;
mod review;
mod roots;
mod serve;
mod session;
mod stamp;
mod tls;
mod token;
mod tuning;
mod version;
mod watched;
mod wire;

pub use accept::{Accept, accept};
pub use agent::Agent;
pub use channel::Channel;
pub use controllers::Controllers;
pub use dial::{Dial, dial};
pub use feed::StateFeed;
pub use review::{ReviewError, Reviewed, Reviewer};
pub use serve::Services;
pub use session::Session;
pub use stamp::{Stamp, Stamped};
pub use tls::{Certificate, Certificates, TlsError};
pub use token::{Token, TokenFile};
pub use tuning::Tuning;
pub use version::Versions;

use tonic::Status;

/// The name that the controller's certificate is for, whatever address it is dialled at.
pub const SERVER_NAME: &str = "quarry-controller";

/// The metadata in which a node's refusal says which states of the node are older than it.
pub const GENERATION: &str = "quarry-generation";

/// The greatest generation of a node's state that was given before the node decided to refuse; a state
/// with a greater one was read after the refusal. Every RESOURCE_EXHAUSTED of a node has it.
pub fn generation(refusal: &Status) -> Option<u64> {
    refusal.metadata().get(GENERATION)?.to_str().ok()?.parse().ok()
}
