//! The first process in a guest: makes the machine, runs the job, turns the machine off.

mod devices;
mod modules;
mod network;
mod power;
mod roots;
mod task;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::kernel::JOB_VARIABLE;
use crate::{Error, Job, job};

/// The job's folder, if this process is the first one of a guest.
pub fn called_for() -> Option<OsString> {
    if std::process::id() == 1 { std::env::var_os(JOB_VARIABLE) } else { None }
}

/// Does all that a guest is there for. Returns only when the machine cannot be turned off.
pub fn main(folder: &Path) {
    if let Err(error) = serve(folder) {
        // Standard error is the kernel's log here. The host sees that no exit status was left.
        drop(writeln!(io::stderr().lock(), "the guest's first process: {}", error.chain()));
    }
    power::turn_off();
}

fn serve(folder: &Path) -> Result<(), Error> {
    let job = Job::load(folder)?;
    roots::enter(folder, &job.shares)?;
    devices::prepare(job.udev)?;
    network::bring_up_loopback().map_err(Error::io("bring up the loopback interface"))?;
    let status = task::run(&job)?;
    let path = Path::new(job::GUEST_FOLDER).join(job::STATUS);
    fs::write(&path, status.to_string()).map_err(Error::at("write", &path))
}
