//! The guest's part: a volume group, the driver, and one step after another.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quarry::types::Bytes;

use crate::calls::{Calls, Mode, Volume};
use crate::driver::{self, Driver, SOCKET};
use crate::error::{Error, ensure};
use crate::screen::{Screen, time};
use crate::table::{Cells, align};
use crate::{Options, files, program, raw};

/// The volume group.
pub(crate) const VG: &str = "demo";

/// How long the driver may take until it serves.
const START: Duration = Duration::from_secs(30);

/// Names as csi-provisioner makes them: `pvc-` and the claim's UID.
pub(crate) const FILES: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
pub(crate) const RAW: &str = "pvc-80a4b1d2-2f0e-4d5b-8f6e-6a1c0b9d7e21";
pub(crate) const RAW_AGAIN: &str = "pvc-c47d5e90-91ab-4c02-a1d7-2b3e8f605a32";
const TOO_LARGE: &str = "pvc-f19b6c08-6c3d-4e7f-b2a9-7d0e5c4b1a43";

/// The walk: who is spoken to, and who is told.
pub(crate) struct Walk {
    pub(crate) screen: Rc<Screen>,
    pub(crate) calls: Calls,
}

/// Walks, and shows the driver's log where that fails.
pub(crate) fn run(options: &Options, disk: &Path) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::io("start"))?;
    let started = Instant::now();
    let screen = Rc::new(stage(disk)?);
    let mut driver = Driver::start(options.driver.as_deref(), VG)?;
    match runtime.block_on(walk(&screen, &mut driver)) {
        Ok(()) => {
            screen.worked(&format!("{} steps in {}.", screen.steps(), time(started.elapsed())));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            explain(&screen, &error, &mut driver);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Makes the group, and a screen that shows names by their beginning: 40 letters twice in a line hide
/// the rest.
fn stage(disk: &Path) -> Result<Screen, Error> {
    let mut screen = Screen::new();
    let beginning = |name: &str, letters| name.chars().take(letters).chain(['…']).collect::<String>();
    for name in [FILES, RAW, RAW_AGAIN, TOO_LARGE] {
        // Device mapper doubles hyphens.
        screen.shorten(name.replace('-', "--"), beginning(name, 12));
        screen.shorten(name, beginning(name, 12));
    }
    screen.step("A volume group, and the driver on it");
    let command = format!("vgcreate {VG} {}", disk.display());
    let started = Instant::now();
    program::shell(&command)?;
    screen.did(&command, started.elapsed());
    let uuid = program::shell(&format!("vgs --noheadings -o vg_uuid {VG}"))?;
    screen.shorten(uuid.as_str(), beginning(&uuid, 6));
    Ok(screen)
}

async fn walk(screen: &Rc<Screen>, driver: &mut Driver) -> Result<(), Error> {
    let calls = started(screen, driver).await?;
    let mut walk = Walk { screen: Rc::clone(screen), calls };
    let before = walk.capacity().await?;
    let volume = files::create(&mut walk).await?;
    files::publish(&mut walk, &volume).await?;
    let sum = files::write(&mut walk, &volume).await?;
    files::expand(&mut walk, &volume).await?;
    files::compare(&mut walk, &volume, &sum).await?;
    let device = raw::create(&mut walk).await?;
    let device = raw::again(&mut walk, &device).await?;
    walk.refuse().await?;
    walk.delete(&[volume, device]).await?;
    walk.capacity_again(before, driver).await
}

/// Waits until the driver serves.
async fn started(screen: &Rc<Screen>, driver: &mut Driver) -> Result<Calls, Error> {
    let started = Instant::now();
    loop {
        if let Ok(calls) = Calls::connect(Path::new(SOCKET), screen).await {
            screen.did(&format!("quarry standalone --volume-group {VG}"), started.elapsed());
            screen
                .note("It serves CSI on a unix socket. From here on the demo calls it as Kubernetes would.");
            return Ok(calls);
        }
        let ended = driver.ended()?;
        ensure(ended.is_none(), || "the driver ended before it served".to_owned())?;
        ensure(started.elapsed() < START, || format!("the driver does not serve within {START:?}"))?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Says what went wrong, with all that the driver said.
fn explain(screen: &Screen, error: &Error, driver: &mut Driver) {
    screen.failed(error);
    // Whoever is killed is silent a moment before he has ended.
    std::thread::sleep(Duration::from_millis(200));
    screen.heading("\nThe driver's log:");
    driver::log().lines().for_each(|line| screen.note(line));
    if let Ok(Some(status)) = driver.ended() {
        screen.note(&format!("The driver ended by itself, with {status}."));
    }
    screen.did_not_work(&format!("step {} failed; the driver's log is above.", screen.steps()));
}

impl Walk {
    async fn capacity(&mut self) -> Result<Bytes, Error> {
        self.screen.step("How much room is there?");
        let room = self.calls.capacity().await?;
        self.show_group()?;
        Ok(room)
    }

    async fn refuse(&mut self) -> Result<(), Error> {
        self.screen.step("A request for more than there is");
        let status = self.calls.create_refused(TOO_LARGE, Bytes::mib(5 << 10)).await?;
        let right = status.code() == tonic::Code::ResourceExhausted && status.message().contains("no room");
        ensure(right, || format!("it should have been refused for lack of room: {status}"))?;
        self.show_volumes("lv_name,lv_size")?;
        self.screen.proved("nothing was made; a scheduler takes this code for: try another node");
        Ok(())
    }

    async fn delete(&mut self, volumes: &[Volume]) -> Result<(), Error> {
        self.screen.step("Both pods end, and both claims are deleted");
        for volume in volumes {
            self.remove(volume).await?;
        }
        let left = self.show_volumes("lv_name,lv_size")?;
        ensure(left.is_empty(), || "there should be no volume left".to_owned())
    }

    async fn capacity_again(&mut self, before: Bytes, driver: &mut Driver) -> Result<(), Error> {
        self.screen.step("The room is what it was");
        let now = self.calls.capacity().await?;
        ensure(now == before, || format!("there were {before} at first, and there are {now} now"))?;
        self.show_group()?;
        let started = Instant::now();
        driver.stop().await?;
        self.screen.did(&format!("kill {}", driver.pid()), started.elapsed());
        Ok(())
    }

    /// Takes a volume from its pod, and removes it.
    pub(crate) async fn remove(&mut self, volume: &Volume) -> Result<(), Error> {
        self.calls.unpublish(volume).await?;
        self.calls.unstage(volume).await?;
        self.calls.delete(volume).await
    }

    fn show_group(&self) -> Result<(), Error> {
        let what = format!("vgs -o vg_name,vg_size,vg_free,lv_count {VG}");
        self.look(&what, "--units m --separator '|'", Cells::Bars).map(drop)
    }

    /// What LVM shows of the volumes: their lines without the headings.
    pub(crate) fn show_volumes(&self, fields: &str) -> Result<Vec<String>, Error> {
        let lines = self.look(&format!("lvs -o {fields} {VG}"), "--units m --separator '|'", Cells::Bars)?;
        Ok(lines.into_iter().skip(1).collect())
    }

    /// Shows what a program shows, its cells aligned. `manner` is left out: it only says how to print.
    pub(crate) fn look(&self, command: &str, manner: &str, cells: Cells) -> Result<Vec<String>, Error> {
        let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
        let output = program::shell(&format!("{program} {manner} {rest}"))?;
        let lines = align(&self.screen.shortened(&output), cells);
        // A table of headings alone is an empty one.
        self.screen.shows(command, if lines.len() == 1 && cells.has_headings() { &[] } else { &lines });
        Ok(lines)
    }

    /// Runs a program that changes something.
    pub(crate) fn does(&self, command: &str) -> Result<String, Error> {
        let started = Instant::now();
        let output = program::shell(command)?;
        self.screen.did(command, started.elapsed());
        Ok(output)
    }

    /// Makes a volume for a pod that sees it at `target`.
    pub(crate) async fn make(
        &mut self,
        name: &str,
        size: Bytes,
        mode: Mode,
        staging: &'static str,
        target: &'static str,
    ) -> Result<Volume, Error> {
        let id = self.calls.create(name, size, mode).await?;
        Ok(Volume { id, mode, staging, target })
    }
}
