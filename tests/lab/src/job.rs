//! What a guest is to run, and the folder through which host and guest talk about it.
//!
//! The folder lies on the host. The guest has it mounted, writable, at [`GUEST_FOLDER`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Where a guest finds its job's folder.
pub(crate) const GUEST_FOLDER: &str = "/run/lab";

/// Written by the host: the [`Job`].
pub(crate) const ORDERS: &str = "orders";
/// Written by the guest: the exit status of the job, a decimal number.
pub(crate) const STATUS: &str = "status";
/// Written by the supervisor: how the guest ended.
pub(crate) const ENDING: &str = "ending";
/// Written by the guest's kernel.
pub(crate) const KERNEL_LOG: &str = "kernel.log";
/// A link to the `lab` binary, which is the guest's first process.
pub(crate) const INIT: &str = "init";
/// An empty folder on which the guest mounts its own memory.
pub(crate) const EMPTY: &str = "empty";
/// A folder of empty files, each named by a message that one side has told the other.
pub(crate) const MESSAGES: &str = "messages";

/// A command, with all that it inherits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) udev: bool,
    pub(crate) shares: Vec<PathBuf>,
}

impl Job {
    /// A job that runs `arguments` (the program first) in the caller's working directory with the caller's
    /// environment.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the working directory cannot be read.
    pub fn new<I>(arguments: I) -> Result<Job, Error>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        Ok(Job {
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: std::env::vars_os().collect(),
            directory: std::env::current_dir().map_err(Error::io("read the working directory"))?,
            ..Job::default()
        })
    }

    /// Sets one variable of the job's environment; the last setting of a name wins.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Job {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The command that runs the job, with nothing to read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] when the job names no program.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self.arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Writes the job into its folder.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(ORDERS);
        fs::write(&path, self.encode()).map_err(Error::at("write", &path))
    }

    /// Reads a job from its folder.
    pub(crate) fn load(folder: &Path) -> Result<Job, Error> {
        let path = folder.join(ORDERS);
        let bytes = fs::read(&path).map_err(Error::at("read", &path))?;
        Ok(Job::decode(&bytes))
    }

    /// One record for each fact, `key:value`, ended by a zero byte, which no argument can hold.
    fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut add = |key: &str, value: &[u8]| {
            text.extend_from_slice(key.as_bytes());
            text.push(b':');
            text.extend_from_slice(value);
            text.push(0);
        };
        add("directory", self.directory.as_os_str().as_bytes());
        if self.udev {
            add("udev", b"");
        }
        for share in &self.shares {
            add("share", share.as_os_str().as_bytes());
        }
        for argument in &self.arguments {
            add("argument", argument.as_bytes());
        }
        for (name, value) in &self.environment {
            add("environment", &[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        text
    }

    fn decode(bytes: &[u8]) -> Job {
        let mut job = Job::default();
        for record in bytes.split(|byte| *byte == 0) {
            let (key, value) = halves(record, b':');
            match key {
                b"directory" => job.directory = PathBuf::from(owned(value)),
                b"udev" => job.udev = true,
                b"share" => job.shares.push(PathBuf::from(owned(value))),
                b"argument" => job.arguments.push(owned(value)),
                b"environment" => {
                    let (name, value) = halves(value, b'=');
                    job.environment.push((owned(name), owned(value)));
                }
                _ => {}
            }
        }
        job
    }
}

/// Splits at the first `mark`; the second half is empty when there is none.
fn halves(bytes: &[u8], mark: u8) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == mark) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

fn owned(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_way_into_the_guest() {
        let job = Job {
            arguments: vec!["sh".into(), "-c".into(), "a:b=c\nd".into(), "".into(), owned(b"\xff\xfe")],
            environment: vec![("A".into(), "x=y:z".into()), ("EMPTY".into(), "".into())],
            directory: "/some where".into(),
            udev: true,
            shares: vec!["/a:b".into()],
        };
        assert_eq!(Job::decode(&job.encode()), job);
    }
}
