//! The driver as a process of its own, for tests in a guest: started, spoken to over its socket, killed.

mod client;
mod image;
mod log;
mod lvm;
pub(crate) mod processes;
mod volume;

pub(crate) use client::{Client, Mode, refused};
pub(crate) use log::Log;
pub(crate) use lvm::{command, lock_group, make_group, report, sh, waits_for_lock};
pub(crate) use volume::{SIZE, Volume, lv_of, pv_name};

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The group that tests work in.
pub(crate) const VG: &str = "vg0";

/// One MiB, in bytes.
pub(crate) const MIB: u64 = 1 << 20;

/// How long the driver may take to answer its first call.
const START: Duration = Duration::from_secs(30);

/// Where the driver's socket is in the guest.
const SOCKET: &str = "/run/quarry/csi.sock";

/// A running driver. It is killed when this is dropped.
pub(crate) struct Driver {
    child: Child,
    socket: PathBuf,
    log: Log,
    reader: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts `quarry standalone` on [`VG`], and waits until it answers.
    pub(crate) async fn start() -> Self {
        Self::start_with(&["--volume-group", VG]).await
    }

    /// Starts `quarry standalone` with these arguments, and waits until it answers.
    pub(crate) async fn start_with(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
        command.arg("standalone").args(arguments);
        Self::launch(command).await
    }

    /// Starts whatever `command` makes a driver, and waits until it answers.
    pub(crate) async fn launch(command: Command) -> Self {
        Self::launch_at(command, SOCKET).await
    }

    /// Starts a second `quarry standalone` on [`VG`], which serves on another socket.
    pub(crate) async fn start_beside(socket: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
        command.args(["standalone", "--volume-group", VG]);
        Self::launch_at(command, socket).await
    }

    async fn launch_at(mut command: Command, socket: &str) -> Self {
        let mut child = command
            .envs(image::environment())
            .env("CSI_ENDPOINT", format!("unix://{socket}"))
            .env("QUARRY_LOG", "debug,h2=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, reader) = Log::of(child.stderr.take().unwrap());
        let mut driver = Self { child, socket: socket.into(), log, reader: Some(reader) };
        driver.answers().await;
        driver
    }

    /// Waits for the first answer.
    async fn answers(&mut self) {
        let end = Instant::now() + START;
        while Client::connect(&self.socket).await.is_none() {
            assert!(self.child.try_wait().unwrap().is_none(), "the driver ended instead of serving");
            assert!(Instant::now() < end, "the driver does not answer within {START:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A client of its own connection.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.socket).await.expect("the driver does not answer")
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it has logged.
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it with no warning.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.ended();
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> std::process::ExitStatus {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.ended()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(mut self) -> std::process::ExitStatus {
        self.ended()
    }

    /// Its end, with its log read to the last line.
    fn ended(&mut self) -> std::process::ExitStatus {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        status
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a test's future on a runtime of its own.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// A folder for staging or publishing, made anew.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new("/var/lib/kubelet").join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// How many mounts lie at a path.
pub(crate) fn mounts_at(path: &Path) -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.split(' ').nth(4) == path.to_str()).count()
}

/// Waits until something outside holds that nobody can wait for otherwise.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + START;
    while !holds().await {
        assert!(Instant::now() < end, "not within {START:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
