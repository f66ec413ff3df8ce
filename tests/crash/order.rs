//! The order of flushes: the life of a volume is recorded write by write on two disks, and begun again from what each
//! disk may hold at any moment, each by itself, had the power been cut. No tag, size or file system is ever older than
//! what was answered, or newer than what lies under it.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use lab::Dice;
use tonic::Status;

use super::bench::{Lv, device, fill, holds_exactly, holds_only, lvs, repeat, size_of_staged};
use super::mkfs::{count_mkfs, mkfs_runs};
use super::recorder::{self, Files, Recording};
use super::trap::{self, End};
use super::{child, id, name, staging};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command};
use crate::wishes;

/// More than half of the first disk, so that the volume lies on both when it has grown to twice that.
const SIZE: u64 = 40 * MIB;

/// What a user of the volume writes.
const DATA: u8 = 0x55;

/// Where a machine after a cut finds what it must hold: the step that was answered, and the kind of volume.
const ANSWERED: &str = "QUARRY_ORDER_ANSWERED";
const KIND: &str = "QUARRY_ORDER_KIND";

/// What a life consists of, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Create,
    Stage,
    Write,
    Expand,
    Unstage,
    Delete,
}

const STEPS: [Step; 6] = [Step::Create, Step::Stage, Step::Write, Step::Expand, Step::Unstage, Step::Delete];

async fn take(client: &mut Client, mode: Mode, step: Step) -> Result<(), Status> {
    let (id, staging) = (id(1), staging(1));
    match step {
        Step::Create => client.create(&name(1), SIZE, mode).await.map(drop),
        Step::Stage => client.stage(&id, &staging, mode).await,
        Step::Write => {
            write(mode);
            Ok(())
        }
        Step::Expand => client.expand(&id, 2 * SIZE, mode).await.map(drop),
        Step::Unstage => client.unstage(&id, &staging).await,
        Step::Delete => client.delete(&id).await,
    }
}

fn data() -> PathBuf {
    staging(1).join("data")
}

/// The application writes, and knows that it is safe.
fn write(mode: Mode) {
    if mode == Mode::Block {
        return fill(&device(&name(1)), 0, SIZE, DATA);
    }
    let mut file = File::create(data()).unwrap();
    file.write_all(&[DATA; 100_000]).unwrap();
    file.sync_all().unwrap();
    File::open(staging(1)).unwrap().sync_all().unwrap();
}

fn holds_what_was_written(mode: Mode) {
    if mode == Mode::Block {
        holds_only(&device(&name(1)), 0, SIZE, DATA);
    } else {
        assert!(fs::read(data()).unwrap() == [DATA; 100_000], "what the application wrote is not there");
    }
}

/// In a guest: one life, recorded.
async fn record(mode: Mode) {
    let driver = child::start().await;
    let mut client = driver.client().await;
    recorder::mark("begin");
    trap::set(End::Record, 0);
    for step in STEPS {
        repeat(async || take(&mut client, mode, step).await).await;
        recorder::answered(&format!("{step:?}"));
    }
    trap::disarm();
    driver.kill();
}

/// In a guest after a cut: what was answered is there, and nothing stands on what is not.
fn holds(mode: Mode, answered: Option<Step>, found: Option<&Lv>) {
    let Some(lv) = found else {
        assert!(answered.is_none_or(|step| step >= Step::Unstage), "the volume is gone after {answered:?}");
        return;
    };
    assert_ne!(answered, Some(Step::Delete), "the volume that was deleted is there again");
    let known = if answered == Some(Step::Unstage) { "fux" } else { "bfu" };
    assert!(known.contains(&lv.state), "after {answered:?}: {lv:?}");
    assert!([SIZE, 2 * SIZE].contains(&lv.size), "{lv:?}");
    assert!(answered < Some(Step::Stage) || lv.state != "b" && lv.state != "f", "after {answered:?}: {lv:?}");
    assert!(answered < Some(Step::Expand) || lv.size == 2 * SIZE, "after {answered:?}: {lv:?}");
    assert!(answered >= Some(Step::Write) || lv.size == SIZE, "after {answered:?}: {lv:?}");
    if lv.state == "f" {
        command("lvchange", &["-q", "-ay", &format!("{VG}/{}", name(1))]);
        match mode {
            Mode::Block => holds_only(&device(&name(1)), 0, SIZE, 0),
            _ => drop(command("e2fsck", &["-fn", device(&name(1)).to_str().unwrap()])),
        }
    }
}

/// In a guest after a cut: life goes on as a cluster has it, to its end.
async fn goes_on(mode: Mode, answered: Option<Step>, found: Option<&Lv>) {
    let driver = Driver::start().await;
    let mut client = driver.client().await;
    let prepared = found.is_some_and(|lv| lv.state != "b");
    if answered < Some(Step::Unstage) {
        if found.is_none() {
            repeat(async || take(&mut client, mode, Step::Create).await).await;
        }
        repeat(async || take(&mut client, mode, Step::Stage).await).await;
        assert!(mkfs_runs() <= usize::from(!prepared), "formatted although it was {found:?}");
        if answered >= Some(Step::Write) {
            holds_what_was_written(mode);
        }
        repeat(async || take(&mut client, mode, Step::Expand).await).await;
        match mode {
            Mode::Block => holds_only(&device(&name(1)), SIZE, 2 * SIZE, 0),
            _ => assert_eq!(size_of_staged(1, mode), 2 * SIZE),
        }
        if answered >= Some(Step::Write) {
            holds_what_was_written(mode);
        }
        holds_exactly([(name(1).as_str(), 2 * SIZE, "u")]);
        repeat(async || take(&mut client, mode, Step::Unstage).await).await;
    }
    repeat(async || take(&mut client, mode, Step::Delete).await).await;
    holds_exactly([]);
}

#[test]
#[ignore = "no test: others run it on disks after a cut"]
fn after_a_cut() {
    let Ok(kind) = std::env::var(KIND) else { return };
    let mode = Mode::ALL.into_iter().find(|mode| mode.word() == kind).unwrap();
    let answered = std::env::var(ANSWERED).unwrap();
    let answered = STEPS.into_iter().find(|step| format!("{step:?}") == answered);
    recorder::attach(&lab::disks());
    count_mkfs();
    let found = lvs().remove(&name(1));
    holds(mode, answered, found.as_ref());
    driver::run(goes_on(mode, answered, found.as_ref()));
}

/// On the host: runs that on disks as they may be after a cut.
fn try_cut(recording: &Recording<'_>, mode: Mode, answered: &str, places: [usize; 2]) {
    let own = std::env::current_exe().unwrap();
    let test = concat!(module_path!(), "::after_a_cut").split_once("::").unwrap().1;
    let flags = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
    let arguments = std::iter::once(own.into_os_string()).chain(flags.map(Into::into));
    let job = lab::Job::new(arguments).unwrap().env(ANSWERED, answered).env(KIND, mode.word());
    let machine = recording.cut(places).into_iter().fold(lab::Machine::new(), lab::Machine::disk_file);
    let finished = machine.start(job, lab::Streams::Capture).unwrap().wait().unwrap_or_else(|error| {
        if let Some(output) = error.output() {
            output.show();
        }
        panic!("{}, with the logs cut at {places:?}", error.chain())
    });
    if finished.end != lab::End::Exited(0) {
        finished.output.show();
        panic!("after {answered:?}, with the logs cut at {places:?}");
    }
}

/// A moment: the step that was answered before, and a place in each log.
type Moment<'a> = (&'a str, [usize; 2]);

/// The moments at which a step has just been answered.
fn answers<'a>(recording: &'a Recording<'_>) -> Vec<Moment<'a>> {
    let begun = recording.windows.windows(2).filter(|pair| pair[0].answered != pair[1].answered);
    begun
        .map(|pair| (pair[1].answered.as_str(), pair[1].places.each_ref().map(|places| *places.start())))
        .collect()
}

/// A moment by chance, in a window in which little is written as likely as in one in which much is.
fn any<'a>(recording: &'a Recording<'_>, dice: &mut Dice) -> Moment<'a> {
    let mut number = |range: RangeInclusive<usize>| {
        usize::try_from(dice.number(*range.start() as u64..*range.end() as u64 + 1)).unwrap()
    };
    let window = &recording.windows[number(0..=recording.windows.len() - 1)];
    (window.answered.as_str(), window.places.clone().map(number))
}

/// Records a life, and begins again from some moments of it.
fn replay(test: &str, mode: Mode) {
    let files = Files::new();
    files.machine().boot(|| {
        recorder::start();
        driver::run(record(mode));
        recorder::stop();
    });
    let recording = files.recording();
    let mut moments = answers(&recording);
    let steps: Vec<String> = STEPS.iter().map(|step| format!("{step:?}")).collect();
    assert!(
        moments.iter().map(|(answered, _)| *answered).eq(steps.iter().map(String::as_str)),
        "{moments:?}"
    );
    let mut dice = Dice::new(wishes::draw(test), 0);
    moments.extend((0..wishes::moments()).map(|_| any(&recording, &mut dice)));
    for (answered, places) in moments {
        try_cut(&recording, mode, answered, places);
    }
}

#[test]
fn whatever_each_disk_has_kept_of_a_mounted_volume_is_true() {
    replay("mounted", Mode::Ext4);
}

#[test]
fn whatever_each_disk_has_kept_of_a_raw_volume_is_true() {
    replay("raw", Mode::Block);
}
