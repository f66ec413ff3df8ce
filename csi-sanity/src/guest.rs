//! The guest's part: a volume group, the driver, the suite once for each kind of volume.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use lab::chain;

use crate::error::Error;
use crate::expected::EXPECTED;
use crate::host::Paths;
use crate::report::{self, Verdict};
use crate::{program, say};

/// The suite's mount points lie below.
const FOLDER: &str = "/run/sanity";
const SOCKET: &str = "/run/quarry/csi.sock";
const VOLUME_GROUP: &str = "vg0";
const MIB: u64 = 1 << 20;
const LVM_LIMIT: Duration = Duration::from_secs(60);
/// The suite stops itself first, so that there is a report.
const SUITE_OWN_LIMIT: &str = "9m";
const SUITE_LIMIT: Duration = Duration::from_secs(600);
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How much of the driver's log is shown when something failed.
const LOG_LINES: usize = 40;

/// A kind of volume with which the suite is run.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// What the suite calls it.
    access: &'static str,
    /// What the class says of the file system; nothing where it is the driver's own choice.
    fs_type: Option<&'static str>,
    /// In bytes, a multiple of the extent size: the suite asks for it exactly. It is doubled by expansion.
    size: u64,
}

const KINDS: [Kind; 4] = [
    Kind { name: "mount", access: "mount", fs_type: None, size: 64 * MIB },
    Kind { name: "block", access: "block", fs_type: None, size: 64 * MIB },
    Kind { name: "xfs", access: "mount", fs_type: Some("xfs"), size: 320 * MIB },
    Kind { name: "btrfs", access: "mount", fs_type: Some("btrfs"), size: 320 * MIB },
];

pub(crate) async fn run(paths: &Paths, device: &Path) -> Result<(), Error> {
    make_folder(&paths.logs)?;
    make_volume_group(device).await?;
    let mut driver = Driver::start(paths)?;
    let mut failed = 0;
    let mut lines = Vec::new();
    for kind in KINDS {
        say(&format!("sanity: run the suite ({})", kind.name));
        let verdict = judge(paths, kind, &mut driver).await;
        for complaint in &verdict.complaints {
            say(&format!("{}: {complaint}", kind.name));
        }
        failed += verdict.failed;
        lines.push(verdict.line(kind.name));
    }
    if let Err(error) = driver.stop().await {
        say(&format!("sanity: {}", chain(&error)));
        failed += 1;
    }
    if failed > 0 {
        driver.show_log();
    }
    print(&lines)?;
    if failed == 0 { Ok(()) } else { Err(Error::Verdict(format!("{failed} failed"))) }
}

async fn make_volume_group(device: &Path) -> Result<(), Error> {
    let mut vgcreate = lvm("vgcreate");
    vgcreate.args(["--yes", VOLUME_GROUP]).arg(device);
    program::succeed(vgcreate, LVM_LIMIT).await.map(drop)
}

/// One run, with all that is wrong about it; also what kept it from running counts.
async fn judge(paths: &Paths, kind: Kind, driver: &mut Driver) -> Verdict {
    let mut verdict = match suite(paths, kind, driver).await {
        Ok(verdict) => verdict,
        Err(error) => Verdict::impossible(chain(&error)),
    };
    match leftovers().await {
        Ok(None) => {}
        Ok(Some(left)) => verdict.complain(left),
        Err(error) => verdict.complain(chain(&error)),
    }
    verdict
}

async fn suite(paths: &Paths, kind: Kind, driver: &mut Driver) -> Result<Verdict, Error> {
    // A folder for each run: what one leaves behind must not fail the other.
    let folder = Path::new(FOLDER).join(kind.name);
    make_folder(&folder)?;
    let report = paths.logs.join(format!("{}.json", kind.name));
    let log = paths.logs.join(format!("{}.log", kind.name));
    // An earlier run's report must not be taken for this one's.
    File::create(&report).map_err(Error::io(format!("empty {}", report.display())))?;
    let mut command = program::command(&paths.suite);
    command
        .arg(format!("--csi.endpoint=unix://{SOCKET}"))
        .arg(format!("--csi.mountdir={}/target", folder.display()))
        .arg(format!("--csi.stagingdir={}/staging", folder.display()))
        .arg(format!("--csi.testvolumeaccesstype={}", kind.access))
        .arg(format!("--csi.testvolumesize={}", kind.size))
        .arg(format!("--csi.testvolumeexpandsize={}", 2 * kind.size))
        .arg(format!("--ginkgo.timeout={SUITE_OWN_LIMIT}"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .arg("--ginkgo.no-color");
    if let Some(fs_type) = kind.fs_type {
        let class = folder.join("class.yaml");
        fs::write(&class, format!("csi.storage.k8s.io/fstype: {fs_type}\n"))
            .map_err(Error::io(format!("write {}", class.display())))?;
        command.arg(format!("--csi.testvolumeparameters={}", class.display()));
    }
    write_to(&mut command, &log)?;
    // The suite waits up to a minute for the socket, so nothing else has to; but a driver that has ended will
    // never make one.
    let mut running = program::start(&mut command)?;
    let status = tokio::select! {
        status = program::end(&mut running, "csi-sanity", SUITE_LIMIT) => status?,
        ended = driver.process.wait() => {
            let ended = ended.map_err(Error::io("wait for the driver"))?;
            return Err(Error::Verdict(format!("the driver ended while the suite ran ({ended})")));
        }
    };
    let text = fs::read(&report).map_err(Error::io(format!("read {} ({status})", report.display())))?;
    let mut verdict = report::judge(&report::parse(&text)?, EXPECTED);
    if !status.success() && verdict.failed == 0 {
        verdict.complain(format!("csi-sanity names no failed spec, but: {status}"));
    }
    Ok(verdict)
}

/// What the suite and the driver should have removed.
async fn leftovers() -> Result<Option<String>, Error> {
    let mut lvs = lvm("lvs");
    lvs.args(["--noheadings", "--options", "lv_name", VOLUME_GROUP]);
    let volumes = program::succeed(lvs, LVM_LIMIT).await?;
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").map_err(Error::io("read the mount table"))?;
    let mounts = mountinfo.lines().filter(|line| line.contains(FOLDER)).count();
    if volumes.trim().is_empty() && mounts == 0 {
        return Ok(None);
    }
    let volumes: Vec<_> = volumes.split_whitespace().collect();
    Ok(Some(format!("left behind: {mounts} mounts, logical volumes {volumes:?}")))
}

/// An LVM command that waits for no udev: the guest may have none.
fn lvm(name: &str) -> Command {
    let mut command = program::command(name);
    command.env("DM_DISABLE_UDEV", "1").env("LC_ALL", "C");
    command
}

/// The driver under test.
struct Driver {
    process: Child,
    log: PathBuf,
}

impl Driver {
    fn start(paths: &Paths) -> Result<Driver, Error> {
        let log = paths.logs.join("driver.log");
        let mut command = program::command(&paths.driver);
        command.args(["standalone", "--endpoint"]).arg(format!("unix://{SOCKET}"));
        command.args(["--volume-group", VOLUME_GROUP]);
        write_to(&mut command, &log)?;
        Ok(Driver { process: program::start(&mut command)?, log })
    }

    /// Asks it to end, as Kubernetes would. It has to, in time and with success.
    async fn stop(&mut self) -> Result<(), Error> {
        if let Some(id) = self.process.id().and_then(|id| i32::try_from(id).ok()) {
            kill(Pid::from_raw(id), Signal::SIGTERM)
                .map_err(|errno| Error::io("stop the driver")(errno.into()))?;
        }
        let status = program::end(&mut self.process, "the driver", STOP_LIMIT).await?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Verdict(format!("the driver ended with {status}")))
    }

    fn show_log(&self) {
        let text =
            fs::read_to_string(&self.log).unwrap_or_else(|error| format!("no log of the driver: {error}"));
        let lines: Vec<_> = text.lines().collect();
        say("sanity: the end of the driver's log:");
        for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
            say(line);
        }
    }
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io(format!("make {}", path.display())))
}

/// Sends both outputs to a file.
fn write_to(command: &mut Command, path: &Path) -> Result<(), Error> {
    let what = format!("write {}", path.display());
    let file = File::create(path).map_err(Error::io(what.clone()))?;
    let same = file.try_clone().map_err(Error::io(what))?;
    command.stdout(file).stderr(same);
    Ok(())
}

fn print(lines: &[String]) -> Result<(), Error> {
    writeln!(io::stdout(), "{}", lines.join("\n")).map_err(Error::io("print the results"))
}
