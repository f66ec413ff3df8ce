//! Without a guest: the job runs on this machine itself, and its disks are loop devices.
//!
//! Only for those who ask: volume groups have no namespace, so a job sees and may harm those of the machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::running::{End, Output, Streams, collect, joined};
use crate::{Error, Job};

/// The environment variable with which a person asks for this, by setting it to 1.
const VARIABLE: &str = "LAB_ON_HOST";

/// One job at a time: the names of volume groups are the whole machine's.
static TURN: Mutex<()> = Mutex::new(());

/// Whether the caller wants jobs to run on this machine instead of in a guest.
pub fn is_on_host_wanted() -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value == "1")
}

/// Runs a job to its end with these files as its disks. `complete` adds their names to the job.
pub(crate) fn run(
    files: &[PathBuf],
    limit: Duration,
    streams: Streams,
    complete: impl FnOnce(&[PathBuf]) -> Result<Job, Error>,
) -> Result<(End, Output), Error> {
    check()?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let loops = files.iter().map(|file| Loop::attach(file)).collect::<Result<Vec<_>, _>>()?;
    let disks: Vec<PathBuf> = loops.iter().map(|disk| disk.device.clone()).collect();
    let finished = run_job(&complete(&disks)?, limit, streams);
    deactivate(&disks)?;
    loops.into_iter().try_for_each(Loop::detach)?;
    finished
}

/// Refuses where device mapper does not work: opening its control file fails when the kernel has none.
fn check() -> Result<(), Error> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/mapper/control");
    control.map(drop).map_err(|error| Error::Missing {
        what: format!("a working device mapper on this host (/dev/mapper/control: {error})"),
        fix: "a guest has one: leave out --on-host and LAB_ON_HOST",
    })
}

/// A loop device, which the kernel takes away by itself when its last user is gone.
struct Loop {
    device: PathBuf,
    _open: File,
}

impl Loop {
    fn attach(file: &Path) -> Result<Loop, Error> {
        let name = output_of(Command::new("losetup").args(["--find", "--show"]).arg(file))?;
        let device = PathBuf::from(name.trim());
        let open = File::open(&device).map_err(Error::at("open", &device))?;
        // Of a device that is open this only makes the kernel remember it, until nothing has it open any more.
        // So a run that is killed leaves no device behind.
        output_of(Command::new("losetup").arg("--detach").arg(&device))?;
        Ok(Loop { device, _open: open })
    }

    fn detach(self) -> Result<(), Error> {
        drop(self._open);
        let name = self.device.file_name().unwrap_or_default();
        if Path::new("/sys/block").join(name).join("loop/backing_file").exists() {
            return Err(Error::Invalid(format!("the job has left {} in use", self.device.display())));
        }
        Ok(())
    }
}

/// Deactivates the volume groups on these disks.
fn deactivate(disks: &[PathBuf]) -> Result<(), Error> {
    if disks.is_empty() {
        return Ok(());
    }
    let report = ["--noheadings", "--options", "vg_name", "--select", "pv_uuid!=\"\""];
    // Disks that are no physical volumes make it fail, after it has named the others.
    let output = Command::new("pvs").args(report).args(disks).output().map_err(Error::io("start pvs"))?;
    let names = String::from_utf8_lossy(&output.stdout);
    for group in names.lines().map(str::trim).filter(|name| !name.is_empty()) {
        output_of(Command::new("vgchange").args(["--activate", "n", group]))?;
    }
    Ok(())
}

fn run_job(job: &Job, limit: Duration, streams: Streams) -> Result<(End, Output), Error> {
    let mut child = start(job, streams).map_err(Error::io("start the job"))?;
    let (stdout, stderr) = (child.stdout.take().map(collect), child.stderr.take().map(collect));
    let group =
        i32::try_from(child.id()).map(Pid::from_raw).map_err(|_| Error::Invalid("no such process".into()))?;
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || drop(sender.send(child.wait())));
    let status = ended.recv_timeout(limit);
    // What the job has left running holds the pipes open. There may be nothing left, which is no error.
    let _ = killpg(group, Signal::SIGKILL);
    let output = Output { stdout: joined(stdout), stderr: joined(stderr) };
    match status {
        Ok(status) => {
            let status = status.map_err(Error::io("wait for the job"))?;
            Ok((End::Exited(as_shell(status)), output))
        }
        Err(_) => Err(Error::TimedOut { limit, output: Box::new(output) }),
    }
}

fn start(job: &Job, streams: Streams) -> io::Result<Child> {
    // A group of its own, so that all of the job can be ended at once.
    job.command()?.process_group(0).stdout(streams.stdio()).stderr(streams.stdio()).spawn()
}

fn as_shell(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn output_of(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::io(format!("start {name}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Invalid(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
