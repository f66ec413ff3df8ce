//! The process between a runner and its guest. It starts the guest's kernel, passes its output on, and ends it.
//!
//! A runner (a test, or `lab run`) holds the supervisor's standard input. When the runner dies, however it dies, that
//! pipe closes and the supervisor takes the guest down and removes the runner's folder. The runner makes the supervisor
//! the first process of a PID namespace where it may: then the kernel ends the guest when the supervisor is killed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid};

use crate::Error;
use crate::ending::Ending;
use crate::{job, kernel, mconsole, scratch};

/// The byte with which a runner asks for a power cut.
pub(crate) const CUT: u8 = b'c';

/// What the supervisor has to know.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The job's folder.
    pub job: PathBuf,
    /// The runner's folder, removed when the runner is gone.
    pub owner: PathBuf,
    /// How long the guest may run.
    pub limit: Duration,
    /// The kernel and its arguments, without the consoles.
    pub kernel: Vec<OsString>,
}

/// Something that the supervisor waits for.
enum Event {
    GuestEnded,
    PowerCut,
    RunnerGone,
}

/// Runs one guest to its end and writes down how it ended.
///
/// # Errors
///
/// [`Error::Io`] when the kernel cannot be started or the result cannot be written.
pub fn run(charge: &Charge) -> Result<(), Error> {
    // A session of its own: a terminal's Ctrl-C reaches the runner only, and the supervisor cleans up after it.
    setsid().map_err(|errno| Error::io("make a session")(errno.into()))?;
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let (signal, signal_end) = pipe()?;
    let guest = start(charge, [&stdout_end, &stderr_end, &signal_end])?;
    drop((stdout_end, stderr_end, signal_end));

    let group =
        Pid::from_raw(guest.id().try_into().map_err(|_| Error::Invalid("no such process number".into()))?);
    let copies = [copy(stdout, io::stdout()), copy(stderr, io::stderr())];
    let (sender, events) = mpsc::channel();
    watch(guest, signal, &sender);
    let ending = wait(&events, charge, group);
    for copy in copies {
        // Every writer of the pipe is dead, so this ends with the last byte.
        drop(copy.join());
    }
    match ending {
        Some(ending) => ending.save(&charge.job),
        None => scratch::remove(&charge.owner),
    }
}

/// A pipe whose writing end the kernel will inherit.
fn pipe() -> Result<(PipeReader, PipeWriter), Error> {
    let (reader, writer) = io::pipe().map_err(Error::io("make a pipe"))?;
    fcntl(writer.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))
        .map_err(|errno| Error::io("share a pipe")(errno.into()))?;
    Ok((reader, writer))
}

/// Starts the kernel with its consoles: 0 is its log, 1 and 2 the job's output, 3 the line on which the guest asks for
/// a power cut.
fn start(charge: &Charge, [stdout, stderr, signal]: [&PipeWriter; 3]) -> Result<Child, Error> {
    let log_path = charge.job.join(job::KERNEL_LOG);
    let log = log_file(&log_path)?;
    let log_too = log.try_clone().map_err(Error::at("open", &log_path))?;
    let (kernel, arguments) =
        charge.kernel.split_first().ok_or_else(|| Error::Invalid("no kernel is named".into()))?;
    Command::new(kernel)
        .args(arguments)
        .arg("con0=null,fd:1")
        .arg(format!("con1=null,fd:{}", stdout.as_raw_fd()))
        .arg(format!("con2=null,fd:{}", stderr.as_raw_fd()))
        .arg(format!("con3=null,fd:{}", signal.as_raw_fd()))
        // Its memory is a temporary file: without these it lies in /dev/shm, which is memory.
        .env_remove("TMPDIR")
        .env_remove("TMP")
        .env_remove("TEMP")
        // A crash leaves its core here, where it is removed.
        .current_dir(&charge.job)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too)
        .spawn()
        .map_err(Error::io("start the guest's kernel"))
}

fn log_file(path: &Path) -> Result<File, Error> {
    OpenOptions::new().create(true).append(true).open(path).map_err(Error::at("open", path))
}

/// Passes everything on until the guest has closed its end. A reader that has gone away does not stop the guest.
fn copy(mut from: PipeReader, mut to: impl Write + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            drop(to.write_all(buffer.get(..length).unwrap_or_default()).and_then(|()| to.flush()));
        }
    })
}

/// Starts one thread for each thing that can happen.
fn watch(mut guest: Child, mut signal: PipeReader, sender: &Sender<Event>) {
    let send = |sender: &Sender<Event>| {
        let sender = sender.clone();
        // The receiver is gone once the guest's end is decided; later news does not matter.
        move |event| drop(sender.send(event))
    };
    let (ended, cut, runner) = (send(sender), send(sender), send(sender));
    thread::spawn(move || {
        drop(guest.wait());
        ended(Event::GuestEnded);
    });
    thread::spawn(move || {
        if let Ok(1..) = signal.read(&mut [0]) {
            cut(Event::PowerCut);
        }
    });
    thread::spawn(move || match io::stdin().read(&mut [0]) {
        Ok(1..) => runner(Event::PowerCut),
        _ => runner(Event::RunnerGone),
    });
}

/// Waits for the guest's end, or brings it about. `None` means that nobody is left to hear of it.
fn wait(events: &Receiver<Event>, charge: &Charge, group: Pid) -> Option<Ending> {
    let ending = match events.recv_timeout(charge.limit) {
        Ok(Event::GuestEnded) => Some(ending_of(&charge.job)),
        Ok(Event::PowerCut) => Some(Ending::PowerCut),
        Ok(Event::RunnerGone) | Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) if mconsole::is_alive(&kernel::control_socket(&charge.job)) => {
            Some(Ending::TimedOut)
        }
        Err(RecvTimeoutError::Timeout) => Some(Ending::Hung),
    };
    // Also after its own end: the kernel's helper processes outlive it. An empty group is no error.
    let _ = killpg(group, Signal::SIGKILL);
    ending
}

/// A guest that ended by itself has left its job's exit status, or else it died.
fn ending_of(job: &Path) -> Ending {
    fs::read_to_string(job.join(job::STATUS))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .map_or(Ending::Died, Ending::Exited)
}
