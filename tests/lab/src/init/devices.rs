//! Device mapper and, where asked for, udev.

use std::fs;
use std::process::Command;

use super::modules;
use crate::Error;

/// Loads the device mapper. LVM and tests load its targets with modprobe when they need them. Starts udev when the job wants it.
pub(super) fn prepare(udev: bool) -> Result<(), Error> {
    fs::write("/proc/sys/kernel/hostname", "lab").map_err(Error::io("set the host name"))?;
    modules::load(&modules::folder()?, "dm-mod")?;
    if udev { start_udev() } else { Ok(()) }
}

/// Starts udev as a booting system does: the daemon, then an event for each device that is already there.
fn start_udev() -> Result<(), Error> {
    run(Command::new("/lib/systemd/systemd-udevd").arg("--daemon"))?;
    run(Command::new("/bin/udevadm").args(["trigger", "--action=add", "--subsystem-match=block"]))?;
    run(Command::new("/bin/udevadm").args(["settle", "--timeout=30"]))
}

/// Runs a program that has to succeed.
fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(Error::io(format!("start {name}")))?;
    if status.success() { Ok(()) } else { Err(Error::Invalid(format!("{name} failed: {status}"))) }
}
