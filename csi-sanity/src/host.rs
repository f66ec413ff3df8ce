//! The host's part: build the suite, boot a guest, run this program in it.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use crate::error::Error;
use crate::{program, say};

/// The folder of the Go module that pins the suite.
const MODULE: &str = env!("CARGO_MANIFEST_DIR");
const PACKAGE: &str = "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity";
/// Enough to fetch and compile it on a cold machine.
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// Boot, two runs of the suite, and the end of the guest, as the lab reads it.
const GUEST_LIMIT: &str = "25m";
/// The lab keeps its own limit; this one is for a lab that does not.
const LAB_LIMIT: Duration = Duration::from_secs(1560);
/// Two full runs of the suite fit in easily, and it costs nothing where it is not written to.
const DISK: &str = "4G";
const MEMORY: &str = "1G";

/// The programs that take part. Host and guest see them under the same names.
pub(crate) struct Paths {
    own: PathBuf,
    lab: PathBuf,
    pub(crate) driver: PathBuf,
    pub(crate) suite: PathBuf,
    /// The folder for reports and logs, the only one that the guest shares with the host.
    pub(crate) logs: PathBuf,
}

impl Paths {
    /// Finds them in the target folder that this program lies in.
    pub(crate) fn find(driver: Option<&Path>) -> Result<Paths, Error> {
        let own = env::current_exe().map_err(Error::io("find this program"))?;
        let driver = match driver {
            Some(path) => path.canonicalize().map_err(Error::io(format!("find {}", path.display())))?,
            None => own.with_file_name("quarry"),
        };
        let profile = own.parent().unwrap_or(Path::new("/"));
        let target = profile.parent().unwrap_or(profile);
        Ok(Paths {
            lab: own.with_file_name("lab"),
            driver,
            suite: target.join("tools/csi-sanity"),
            logs: target.join("sanity"),
            own,
        })
    }
}

pub(crate) async fn run(paths: &Paths) -> Result<(), Error> {
    say("sanity: build csi-sanity");
    build(&paths.suite).await?;
    fs::create_dir_all(&paths.logs).map_err(Error::io(format!("make {}", paths.logs.display())))?;
    say("sanity: boot a guest");
    let mut lab = program::command(&paths.lab);
    lab.args(["run", "--disk", DISK, "--memory", MEMORY, "--limit", GUEST_LIMIT]);
    lab.arg("--share")
        .arg(&paths.logs)
        .arg("--")
        .arg(&paths.own)
        .arg("--in-guest")
        .arg("--driver")
        .arg(&paths.driver);
    let status = program::end(&mut program::start(&mut lab)?, "lab", LAB_LIMIT).await?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Verdict(format!(
        "the run in the guest did not pass ({status}); logs: {}",
        paths.logs.display()
    )))
}

async fn build(suite: &Path) -> Result<(), Error> {
    let mut go = program::command("go");
    go.current_dir(MODULE)
        .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(suite)
        .arg(PACKAGE)
        .env("CGO_ENABLED", "0");
    program::succeed(go, BUILD_LIMIT).await.map(drop)
}
