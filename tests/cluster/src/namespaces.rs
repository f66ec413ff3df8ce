//! Kernel namespaces: the cluster has a network, a process table and a mount table of its own.
//!
//! None of them has a name. They are there as long as the cluster's first process is, and with it goes all that is in
//! them: processes, devices, mounts. So nothing has to be tidied up after a crash.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::Error;

/// Starts a process as the first one of a new process table: when it ends, the kernel ends all others in it.
pub(crate) fn start_first(mut command: Command) -> Result<Child, Error> {
    // The new table is for the later children of one thread only, and this thread has just this one.
    let spawning = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWPID)?;
        command.spawn()
    });
    let child = spawning.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
    child.map_err(Error::io("start the cluster's first process"))
}

/// Gives this process, which must not have started a thread yet, a network and a mount table of its own.
pub(crate) fn enter() -> Result<(), Error> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(Error::io("make namespaces"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(Error::io("keep mounts to this process"))?;
    // The old one shows the numbers of the old process table.
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>)
        .map_err(Error::io("mount /proc"))
}

/// Takes this process, which must not have started a thread yet, into the network of another.
pub(crate) fn join_network(process: i32) -> Result<(), Error> {
    let path = format!("/proc/{process}/ns/net");
    let network = File::open(&path).map_err(Error::io(format!("open {path}")))?;
    setns(network, CloneFlags::CLONE_NEWNET).map_err(Error::io("enter the cluster's network"))
}

/// This process's number outside of the namespaces that it has not entered yet.
pub(crate) fn own_number() -> Result<i32, Error> {
    let link = fs::read_link("/proc/self").map_err(Error::io("read /proc/self"))?;
    link.to_string_lossy().parse().map_err(|_| Error::other(format!("{} is no process", link.display())))
}

/// When a process started, in the kernel's own unit. With its number it names a process for good.
pub(crate) fn start_time(process: i32) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    parse_start_time(&text)
}

/// The 22nd field; the second one, in parentheses, can hold anything.
fn parse_start_time(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    // A process that has ended and not been waited for is as good as none.
    let mut fields = rest.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20";
        assert_eq!(parse_start_time(&format!("12 (a b) c) {fields}")), Some(777));
        assert_eq!(parse_start_time(&format!("12 (a) {}", fields.replacen('S', "Z", 1))), None);
        assert_eq!(parse_start_time("12 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_a_number_and_a_start_time() {
        assert!(start_time(own_number().unwrap()).is_some());
    }
}
