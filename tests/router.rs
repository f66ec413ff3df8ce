//! The controller: against an API server in memory, and over real sockets.

mod api_server;
mod authority;
mod election;
mod events;
mod labels;
mod review;
