//! Many callers at once, with the driver killed or the power cut under them, and a checker that knows what
//! was asked and what was answered.
//!
//! ```text
//!   burst    ── more creates at once than there is room for
//!   kills    ── calls of every kind from 16 callers, the driver killed again and again
//!   cuts     ── the same, the machine's power cut again and again
//!
//!   facts    ── what is known of one volume, and what a call changes about it: the model
//!   judge    ── which answers the model allows
//!   ledger   ── the models of all volumes, on a disk that outlives the machine
//!   caller   ── who asks, and tells the ledger before and after
//!   user     ── what a pod does: it writes, and reads what it wrote
//!   check    ── the machine as it is, held against the ledger
//! ```
//!
//! A call that was not answered may have been done or not: from then on both are allowed, until an answer or
//! a look at the machine settles it. So the model needs no knowledge of how the driver works.

mod burst;
mod call;
mod caller;
mod check;
mod cuts;
mod facts;
mod judge;
mod kills;
mod ledger;
mod process;
mod shift;
mod slot;
mod user;

/// The number of volumes there can be.
const SLOTS: usize = 100;

/// How many callers there are.
const CALLERS: u64 = 16;
