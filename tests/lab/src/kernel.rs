//! The guest's kernel: where it is, and its command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::job;

/// Where Debian's package `user-mode-linux` puts the kernel's modules.
pub(crate) const MODULES: &str = "/usr/lib/uml/modules";

/// The name of the job's folder in the environment of the guest's first process.
///
/// The kernel hands every `name=value` on its command line that it does not know to that process.
pub(crate) const JOB_VARIABLE: &str = "lab_job";

/// The name of the folder, inside the job's, that holds the kernel's control socket.
const NAME: &str = "uml";

/// What a guest is made of, apart from its job.
#[derive(Debug, Clone)]
pub(crate) struct Hardware {
    /// Files on the host that are the guest's `/dev/ubda`, `/dev/ubdb`, …
    pub(crate) disks: Vec<PathBuf>,
    /// In bytes.
    pub(crate) memory: u64,
    /// Whether the kernel gets its RAID 6 routines ready.
    pub(crate) raid6: bool,
    /// What the guest's network interface is connected to, if it has one.
    pub(crate) network: Option<Network>,
}

/// A network interface: `vec0` in the guest, a tap device on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) tap: String,
    pub(crate) address: [u8; 6],
}

impl Network {
    /// The description that the kernel's driver reads.
    fn setting(&self) -> OsString {
        let address = self.address.map(|byte| format!("{byte:02x}")).join(":");
        format!("vec0:transport=tap,ifname={},depth=128,gro=1,mac={address}", self.tap).into()
    }
}

/// Finds the kernel, and checks that all is there that a guest needs.
///
/// # Errors
///
/// [`Error::Missing`], with the command that installs what is missing.
pub(crate) fn find() -> Result<PathBuf, Error> {
    let kernel = program("linux.uml")?;
    program("modprobe")?;
    if Path::new(MODULES).is_dir() { Ok(kernel) } else { Err(missing(MODULES)) }
}

fn missing(what: &str) -> Error {
    Error::Missing { what: what.to_owned(), fix: "`make setup` installs it" }
}

fn program(name: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/bin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| missing(name))
}

/// The kernel's command line, without the consoles, which the supervisor adds.
pub(crate) fn command_line(hardware: &Hardware, job: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> =
        ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null"]
            .map(OsString::from)
            .to_vec();
    if !hardware.raid6 {
        // It measures all its RAID 6 routines to choose one, which takes longer than the rest of the start.
        line.push("initcall_blacklist=raid6_select_algo".into());
    }
    // The speed of its delay loop, which it would measure. There is no hardware that would need an exact one.
    line.push("lpj=40000000".into());
    line.push(format!("mem={}K", hardware.memory / 1024).into());
    line.push(format!("umid={NAME}").into());
    line.push(setting("uml_dir", job));
    line.push(setting("init", &job.join(job::INIT)));
    line.push(setting(JOB_VARIABLE, job));
    for (number, disk) in hardware.disks.iter().enumerate() {
        line.push(setting(&format!("ubd{number}"), disk));
    }
    line.extend(hardware.network.as_ref().map(Network::setting));
    line
}

fn setting(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push("=");
    text.push(path);
    text
}

/// The kernel's control socket, while a guest with this job folder runs.
pub(crate) fn control_socket(job: &Path) -> PathBuf {
    job.join(NAME).join("mconsole")
}

/// The guest's name for its disk of this number, counted from 0.
pub(crate) fn disk_name(number: usize) -> String {
    // More than 16 disks are refused before this is called.
    let letter = u8::try_from(number).map_or('?', |number| char::from(b'a' + number));
    format!("ubd{letter}")
}

/// The most disks that the kernel's driver can hold.
pub(crate) const MOST_DISKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_interface_is_described_as_the_kernel_reads_it() {
        let network = Network { tap: "tap1".to_owned(), address: [2, 0, 10, 250, 0, 11] };
        assert_eq!(network.setting(), "vec0:transport=tap,ifname=tap1,depth=128,gro=1,mac=02:00:0a:fa:00:0b");
    }
}
