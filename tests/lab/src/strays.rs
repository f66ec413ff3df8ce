//! Guests whose supervisor was killed on a host that did not let it have a PID namespace.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often to look again: what is being killed may just have started another process.
const ROUNDS: usize = 100;

/// Kills every process that works for a guest whose files lie in this folder.
pub(crate) fn kill_guests_of(folder: &Path) {
    for _ in 0..ROUNDS {
        let strays = processes_of(folder);
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            // It may be gone by now, which is as well.
            let _ = kill(stray, Signal::SIGKILL);
        }
    }
}

/// A guest's processes all have its kernel's command line, which names its folder.
fn processes_of(folder: &Path) -> Vec<Pid> {
    let names_folder = |argument: &[u8]| {
        argument
            .strip_prefix(b"uml_dir=")
            .is_some_and(|path| Path::new(OsStr::from_bytes(path)).starts_with(folder))
    };
    let pid_of = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        line.split(|byte| *byte == 0).any(names_folder).then(|| Pid::from_raw(pid))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(pid_of).collect()
}
