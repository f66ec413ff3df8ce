//! Volume groups that are unhealthy, change, hang, or belong to hostile hosts: what goes on all the same,
//! and what is refused with a plain reason.

mod backup;
mod change;
mod failing;
mod health;
mod host;
mod metadata;
mod partial;
mod returned;
mod stuck;
mod support;
mod unwritable;
