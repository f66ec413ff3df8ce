//! The driver, as a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Error, ensure};
use crate::program;

/// Where it serves.
pub(crate) const SOCKET: &str = "/run/quarry/csi.sock";

/// Where its log goes: nobody wants to read it unless something fails.
const LOG: &str = "/run/quarry-demo.log";

/// How long it may take to end.
const STOP: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(20);

/// A running driver; it is killed when this is dropped.
pub(crate) struct Driver {
    child: Child,
}

impl Driver {
    /// Starts `quarry standalone` on a volume group.
    pub(crate) fn start(binary: Option<&Path>, vg: &str) -> Result<Self, Error> {
        let binary = binary.map_or_else(beside, |binary| Ok(binary.to_owned()))?;
        let log = File::create(LOG).map_err(Error::io(format!("write {LOG}")))?;
        let log_too = log.try_clone().map_err(Error::io(format!("write {LOG}")))?;
        let child = program::command(&binary)
            .args(["standalone", "--volume-group", vg, "--endpoint", &format!("unix://{SOCKET}")])
            .stdout(log)
            .stderr(log_too)
            .spawn()
            .map_err(Error::io(format!("start {}", binary.display())))?;
        Ok(Self { child })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::io("look at the driver"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, which it must do by itself and without complaint.
    pub(crate) async fn stop(&mut self) -> Result<(), Error> {
        let pid = i32::try_from(self.child.id()).map_err(|_| Error::Wrong("no such process".to_owned()))?;
        kill(Pid::from_raw(pid), Signal::SIGTERM)
            .map_err(|errno| Error::io("stop the driver")(errno.into()))?;
        let end = Instant::now() + STOP;
        loop {
            if let Some(status) = self.ended()? {
                return ensure(status.success(), || format!("the driver ended with {status}"));
            }
            ensure(Instant::now() < end, || format!("the driver did not end within {STOP:?}"))?;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// All that it has logged.
pub(crate) fn log() -> String {
    fs::read_to_string(LOG).unwrap_or_else(|error| format!("{LOG}: {error}"))
}

/// Cargo puts examples into a folder beside the binaries.
fn beside() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::io("find this program"))?;
    let folder = own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    Ok(folder.join("quarry"))
}
