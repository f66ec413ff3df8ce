//! The job itself, and the way of its output to the host.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, cfmakeraw, tcdrain, tcgetattr, tcsetattr};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;

use crate::{Error, Job};

/// A shell's exit status for a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// Runs the job to its end and returns its exit status, as a shell would put it.
///
/// The job writes into pipes, not to the consoles, so that it does not take its output for a person's terminal.
pub(super) fn run(job: &Job) -> Result<i32, Error> {
    let (stdout, mut stderr) = (console("/dev/tty1")?, console("/dev/tty2")?);
    let mut child =
        match job.command().and_then(|mut job| job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()) {
            Ok(child) => child,
            Err(error) => {
                let name = job.arguments.first().cloned().unwrap_or_default();
                let text = format!("cannot start {}: {error}\n", name.to_string_lossy());
                stderr.write_all(text.as_bytes()).map_err(Error::io("write to the console"))?;
                return Ok(NOT_STARTED);
            }
        };
    let copies = [
        child.stdout.take().map(|from| copy(from, stdout)),
        child.stderr.take().map(|from| copy(from, stderr)),
    ];
    let status = reap_until(&child).map_err(|errno| Error::io("wait for the job")(errno.into()))?;
    // What the job has left running holds the pipes open. There may be nothing left, which is no error.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    for copy in copies.into_iter().flatten() {
        drop(copy.join());
    }
    Ok(status)
}

/// Opens a console that passes every byte on as it is.
fn console(path: &str) -> Result<File, Error> {
    let file = OpenOptions::new().write(true).open(path).map_err(Error::io(format!("open {path}")))?;
    let set_raw = || {
        let mut settings = tcgetattr(&file)?;
        cfmakeraw(&mut settings);
        tcsetattr(&file, SetArg::TCSANOW, &settings)
    };
    set_raw().map_err(|errno: Errno| Error::io(format!("set up {path}"))(errno.into()))?;
    Ok(file)
}

/// Copies until the last writer is gone and all is on the host.
fn copy(mut from: impl Read + Send + 'static, mut to: File) -> JoinHandle<()> {
    thread::spawn(move || {
        drop(io::copy(&mut from, &mut to));
        let _ = tcdrain(&to);
    })
}

/// The first process inherits every orphan: takes them all until the job itself ends.
fn reap_until(child: &Child) -> nix::Result<i32> {
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, status)) if is(pid, child) => return Ok(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if is(pid, child) => {
                return Ok(128 + signal as i32);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn is(pid: Pid, child: &Child) -> bool {
    u32::try_from(pid.as_raw()) == Ok(child.id())
}
