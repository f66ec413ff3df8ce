//! `lab run` as a process, in a temporary folder of its own.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::wait_until;

/// A `lab run` whose guest sleeps.
pub(crate) struct Runner {
    folder: TempDir,
    process: Child,
}

impl Runner {
    /// Starts one with these options, and waits until its job runs.
    pub(crate) fn start(options: &[&str]) -> Runner {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let job = format!("touch {} && sleep 1000", ready.display());
        let process = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["run", "--share", folder.path().to_str().unwrap()])
            .args(options)
            .args(["--", "sh", "-c", &job])
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the job runs", || ready.exists());
        Runner { folder, process }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Waits for its end, and returns its status and what it complained of.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let mut errors = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.wait(), errors)
    }

    /// The processes that belong to this run and whose program, or its first argument, contains `word`.
    pub(crate) fn pids_of(&self, word: &str) -> Vec<Pid> {
        let own = self.folder.path().to_str().unwrap();
        let belongs = |entry: &fs::DirEntry| {
            let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            line.contains(own) && line.split('\0').take(2).any(|start| start.contains(word))
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(belongs);
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw).collect()
    }

    /// The temporary folders of this run that are there.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let root = self.folder.path().join(format!("quarry-lab-{}", nix::unistd::getuid()));
        fs::read_dir(root).unwrap().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// The folder in which its temporary folders lie.
    pub(crate) fn temporary(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
