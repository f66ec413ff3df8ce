//! The lab: a machine with a working device mapper, for tests on real LVM.
//!
//! The machine is a guest: a user-mode Linux kernel, an ordinary process that needs neither hardware support nor
//! modules on the host. Its root is the host's own file system under an overlay in memory: all programs are there,
//! and nothing that the guest writes reaches the host, except into its disks.
//!
//! A test says what machine it wants and boots it:
//!
//! ```no_run
//! let machine = lab::Machine::new().disk("1G");
//! machine.boot(|| { /* in the guest: lab::disks() are real, and so is LVM */ });
//! machine.boot(|| { /* the same disks again, after a restart */ });
//! ```
//!
//! On the host `boot` starts a guest, which runs the same test again; there the closure runs.
//!
//! | module | what it owns |
//! |---|---|
//! | `machine`, `running` | a machine and its guests, seen from the host |
//! | `boot`, `inside` | tests: the host's half and the guest's half |
//! | `launch`, `supervisor` | the process between runner and guest: nothing outlives its runner |
//! | `init` | the first process in the guest |
//! | `job`, `messages`, `ending` | what host and guest write into the folder that they share |
//! | `kernel`, `mconsole` | the guest's kernel: command line and control socket |
//! | `on_host` | jobs without a guest, for those who ask |
//! | `scratch`, `strays` | what a killed run has left: folders and, on some hosts, guests |
//! | `slots`, `size` | the number of guests; sizes as people write them |
//! | `dice` | random numbers that a seed repeats |
//! | `write_log` | what dm-log-writes recorded, to be replayed up to any point |

#![expect(clippy::disallowed_methods, reason = "the lab starts the guests and what runs in them")]

mod boot;
mod dice;
mod ending;
mod error;
pub mod init;
mod inside;
mod job;
mod kernel;
mod launch;
mod machine;
mod mconsole;
mod messages;
mod on_host;
mod running;
mod scratch;
mod size;
mod slots;
mod strays;
pub mod supervisor;
mod write_log;

pub use dice::Dice;
pub use error::{Error, chain};
pub use inside::{disks, is_guest, power_cut, tell, wait_for};
pub use job::Job;
pub use machine::Machine;
pub use on_host::is_on_host_wanted;
pub use running::{End, Finished, Output, Running, Streams};
pub use scratch::sweep_leftovers;
pub use size::{parse_duration, parse_size};
pub use write_log::{Entry, WriteLog};
