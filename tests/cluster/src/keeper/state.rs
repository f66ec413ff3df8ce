//! Which process a running cluster belongs to, for those who look for it; and that there is never more than one.

use std::fs::File;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::paths::{self, Paths};
use crate::{Error, namespaces};

const PAUSE: Duration = Duration::from_millis(50);

/// The keeper of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    process: i32,
    /// Numbers are used again; this tells whether the process is still the same.
    started: u64,
    /// Whether the cluster is up, and stays.
    pub(crate) ready: bool,
}

impl State {
    /// This process, which has not entered its namespaces yet.
    pub(crate) fn own() -> Result<State, Error> {
        let process = namespaces::own_number()?;
        let started =
            namespaces::start_time(process).ok_or_else(|| Error::other("this process has not started"))?;
        Ok(State { process, started, ready: false })
    }

    pub(crate) fn save(&self, paths: &Paths) -> Result<(), Error> {
        paths::make_folder(&paths.run())?;
        paths::write(&file(paths), serde_json::to_vec(self).map_err(Error::other)?)
    }

    /// The keeper of the cluster that is there, if it lives.
    pub(crate) fn load(paths: &Paths) -> Option<State> {
        let text = std::fs::read(file(paths)).ok()?;
        let state: State = serde_json::from_slice(&text).ok()?;
        state.lives().then_some(state)
    }

    /// Its number, outside of the cluster's own process table.
    pub(crate) fn process(&self) -> i32 {
        self.process
    }

    fn lives(&self) -> bool {
        namespaces::start_time(self.process) == Some(self.started)
    }

    /// Sends it a signal, and waits for its end. Returns whether it has ended.
    pub(crate) fn end(&self, signal: Signal, limit: Duration) -> Result<bool, Error> {
        if self.lives() {
            match kill(Pid::from_raw(self.process), signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(Error::io("end the cluster")(errno)),
            }
        }
        let deadline = Instant::now() + limit;
        while self.lives() {
            if Instant::now() > deadline {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
        Ok(true)
    }
}

fn file(paths: &Paths) -> PathBuf {
    paths.run().join("keeper.json")
}

/// Takes one of the locks that are held by living processes only. `None` when somebody else has it.
pub(crate) fn lock(paths: &Paths, name: &str) -> Result<Option<File>, Error> {
    paths::make_folder(&paths.home())?;
    let path = paths.home().join(format!("{name}.lock"));
    let file = File::create(&path).map_err(Error::at("make", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(Error::at("lock", &path)(error)),
    }
}
