//! A guest that runs, seen from the host.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::ending::Ending;
use crate::launch::launch;
use crate::machine::make_disk;
use crate::size::parse_size;
use crate::slots::Slot;
use crate::strays::kill_guests_of;
use crate::supervisor::{CUT, Charge};
use crate::{Error, job, kernel, mconsole, messages};

/// Where the job's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// To the caller's own standard output and standard error, as it comes.
    Inherit,
    /// Into [`Finished::output`].
    Capture,
}

impl Streams {
    pub(crate) fn stdio(self) -> Stdio {
        match self {
            Streams::Inherit => Stdio::inherit(),
            Streams::Capture => Stdio::piped(),
        }
    }
}

/// What a job has written. Empty when the streams were inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Prints a guest's output as a test's own, which the test framework shows for tests that fail.
    #[expect(
        clippy::print_stdout,
        reason = "the test framework captures what this macro prints, and nothing else"
    )]
    pub fn show(&self) {
        for (name, text) in [("output", &self.stdout), ("errors", &self.stderr)] {
            if !text.is_empty() {
                println!("--- the guest's {name}:\n{}", String::from_utf8_lossy(text));
            }
        }
    }
}

/// How a guest ended that did as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The job ended with this exit status; 128 and a signal's number when a signal ended it.
    Exited(i32),
    /// The power was cut, as the job or the host had asked.
    PowerCut,
}

/// The result of a guest that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What the job wrote.
    pub output: Output,
    /// The job's folder on the host.
    pub(crate) folder: PathBuf,
}

/// A guest that is running. Dropping it cuts its power.
#[derive(Debug)]
pub struct Running {
    supervisor: Child,
    /// The supervisor ends the guest and removes the machine's folder when this closes.
    lifeline: Mutex<Option<ChildStdin>>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    job: PathBuf,
    limit: Duration,
    disks: AtomicUsize,
    cut: AtomicBool,
    ended: bool,
    _slot: Option<Slot>,
}

impl Running {
    pub(crate) fn start(
        binary: &Path,
        charge: Charge,
        streams: Streams,
        disks: usize,
        slot: Option<Slot>,
    ) -> Result<Running, Error> {
        let mut supervisor = launch(binary, &charge, streams)?;
        Ok(Running {
            lifeline: Mutex::new(supervisor.stdin.take()),
            stdout: supervisor.stdout.take().map(collect),
            stderr: supervisor.stderr.take().map(collect),
            supervisor,
            job: charge.job,
            limit: charge.limit,
            disks: AtomicUsize::new(disks),
            cut: AtomicBool::new(false),
            ended: false,
            _slot: slot,
        })
    }

    /// Adds an empty disk of a size such as `"1G"`, and returns its path in the guest. The device appears there soon
    /// after, as with any disk that is plugged in. The next guest of the machine does not have it.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when `size` is none, [`Error::Io`] when the guest's kernel refuses the disk.
    pub fn add_disk(&self, size: &str) -> Result<PathBuf, Error> {
        let (bytes, name) = (parse_size(size)?, self.next_disk()?);
        let file = self.job.join(&name);
        make_disk(&file, bytes)?;
        self.plug(&name, &file)
    }

    /// Adds a disk whose content is a file of the caller's, which no other guest may have as a disk now. As
    /// [`Running::add_disk`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the guest's kernel refuses the disk.
    pub fn add_disk_file(&self, file: &Path) -> Result<PathBuf, Error> {
        self.plug(&self.next_disk()?, file)
    }

    fn next_disk(&self) -> Result<String, Error> {
        let number = self.disks.fetch_add(1, Ordering::Relaxed);
        if number >= kernel::MOST_DISKS {
            return Err(Error::Invalid(format!("a machine can have {} disks", kernel::MOST_DISKS)));
        }
        Ok(kernel::disk_name(number))
    }

    fn plug(&self, name: &str, file: &Path) -> Result<PathBuf, Error> {
        self.ask_kernel(&format!("config {name}={}", file.display()))?;
        Ok(Path::new("/dev").join(name))
    }

    /// Pulls a disk out of the guest, by its path there.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the guest's kernel refuses, which it does while the disk is open.
    pub fn remove_disk(&self, disk: &Path) -> Result<(), Error> {
        let name = disk.file_name().unwrap_or_default().to_string_lossy();
        self.ask_kernel(&format!("remove {name}")).map(drop)
    }

    fn ask_kernel(&self, command: &str) -> Result<String, Error> {
        mconsole::ask(&kernel::control_socket(&self.job), command)
    }

    /// How long the guest's kernel has been up, by its own clock. One whose clock stands still has hung.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the kernel does not answer: it has not started yet, has ended, or has hung.
    pub fn uptime(&self) -> Result<Duration, Error> {
        let answer = self.ask_kernel("proc uptime")?;
        let seconds = answer.split_whitespace().next().and_then(|word| word.parse().ok());
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| Error::Invalid(format!("{answer:?} is no uptime")))
    }

    /// Whether the guest has ended, in whatever way.
    pub fn has_ended(&self) -> bool {
        self.job.join(job::ENDING).exists()
    }

    /// The end of what the guest's kernel has logged.
    pub fn kernel_log(&self) -> String {
        kernel_log(&self.job)
    }

    /// Cuts the guest's power: what its kernel has not written to its disks is lost.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the guest has already ended.
    pub fn cut_power(&self) -> Result<(), Error> {
        let mut lifeline = self.lifeline.lock().unwrap_or_else(PoisonError::into_inner);
        self.cut.store(true, Ordering::Relaxed);
        match lifeline.as_mut() {
            Some(lifeline) => lifeline.write_all(&[CUT]).map_err(Error::io("cut the guest's power")),
            None => Ok(()),
        }
    }

    /// Whether [`Running::cut_power`] has been called.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Tells the guest's job `message`, a plain word; see [`crate::wait_for`].
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when `message` is not a plain word, [`Error::Io`] when it cannot be left.
    pub fn tell(&self, message: &str) -> Result<(), Error> {
        messages::leave(&self.job, message)
    }

    /// Waits until the guest's job has told `message`; see [`crate::tell`].
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when it has not within `patience`, or the guest has ended without it.
    pub fn wait_for(&self, message: &str, patience: Duration) -> Result<(), Error> {
        messages::wait_for(&self.job, message, patience)
    }

    /// Waits for the guest's end.
    ///
    /// # Errors
    ///
    /// [`Error::Died`] when the guest ended before its job did; [`Error::TimedOut`] when the job did not end in time,
    /// [`Error::Hung`] when that was because the guest's kernel stood still.
    pub fn wait(mut self) -> Result<Finished, Error> {
        let output = self.finish()?;
        let ending = Ending::load(&self.job).unwrap_or_else(|_| {
            // A supervisor that was killed has written nothing down, and may have left its guest behind.
            kill_guests_of(&self.job);
            Ending::Died
        });
        let folder = self.job.clone();
        let finished = |end, output| Ok(Finished { end, output, folder });
        let kernel_log = || kernel_log(&self.job);
        let (limit, boxed) = (self.limit, Box::new);
        match ending {
            Ending::Exited(status) => finished(End::Exited(status), output),
            Ending::PowerCut => finished(End::PowerCut, output),
            Ending::Died => Err(Error::Died { kernel_log: kernel_log(), output: boxed(output) }),
            Ending::Hung => Err(Error::Hung { limit, kernel_log: kernel_log(), output: boxed(output) }),
            Ending::TimedOut => Err(Error::TimedOut { limit, output: boxed(output) }),
        }
    }

    /// Waits for the supervisor, which bounds the wait, and for the last of the output.
    fn finish(&mut self) -> Result<Output, Error> {
        self.ended = true;
        self.supervisor.wait().map_err(Error::io("wait for the guest"))?;
        Ok(Output { stdout: joined(self.stdout.take()), stderr: joined(self.stderr.take()) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // Not by closing the lifeline: that would take the machine's disks away too.
            drop(self.cut_power());
            if let Ok(output) = self.finish()
                && thread::panicking()
            {
                output.show();
            }
        }
    }
}

/// Reads a stream to its end, on a thread of its own.
pub(crate) fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(from.read_to_end(&mut bytes));
        bytes
    })
}

/// What was collected; nothing from a stream that was not captured.
pub(crate) fn joined(reader: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
}

/// What every healthy kernel of this kind complains about.
const NOISE: [&str; 3] = ["SELinux:", "mmapper_init", "Failed to initialize ubd device 0"];

/// The end of the kernel's log: a panic's trace fits.
fn kernel_log(job: &Path) -> String {
    let log = std::fs::read(job.join(job::KERNEL_LOG)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> =
        log.lines().filter(|line| !NOISE.iter().any(|noise| line.starts_with(noise))).collect();
    lines.get(lines.len().saturating_sub(60)..).unwrap_or_default().join("\n")
}
