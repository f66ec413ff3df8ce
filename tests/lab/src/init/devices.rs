//! Device mapper and, where asked for, udev.

use std::fs;
use std::process::Command;

use super::roots::run;
use crate::Error;

/// Loads the device mapper; its targets are loaded on demand, by LVM itself. Starts udev when the job wants it.
pub(super) fn prepare(udev: bool) -> Result<(), Error> {
    fs::write("/proc/sys/kernel/hostname", "lab").map_err(Error::io("set the host name"))?;
    run(Command::new("/sbin/modprobe").arg("dm-mod"))?;
    if udev { start_udev() } else { Ok(()) }
}

/// Starts udev as a booting system does: the daemon, then an event for each device that is already there.
fn start_udev() -> Result<(), Error> {
    run(Command::new("/lib/systemd/systemd-udevd").arg("--daemon"))?;
    run(Command::new("/bin/udevadm").args(["trigger", "--action=add", "--subsystem-match=block"]))?;
    run(Command::new("/bin/udevadm").args(["settle", "--timeout=30"]))
}
