//! The machine's power is cut around every change in a volume's life, and the life goes on after it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tonic::Status;

use super::bench::{self, device, dirty_free_space, fill, free, holds_exactly, holds_only, lvs, repeat};
use super::mkfs::{count_mkfs, mkfs_runs};
use super::trap::{self, End};
use super::{child, id, name, staging};
use crate::driver::{self, Client, MIB, Mode, VG, make_group, mounts_at};

/// Where the tests of the machines that come one after another find the folder that outlives them.
const MEMORY: &str = "QUARRY_CRASH_MEMORY";

/// The least number of changes in a life.
const FEWEST: usize = 12;

/// What a life consists of, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Create,
    Stage,
    Expand,
    Unstage,
    Delete,
}

const STEPS: [Step; 5] = [Step::Create, Step::Stage, Step::Expand, Step::Unstage, Step::Delete];

/// What a user of the volume writes.
const DATA: u8 = 0x55;

/// A kind of volume, and what is remembered of the one that lives now: on the host, since the machine dies.
struct Lives {
    mode: Mode,
    size: u64,
    memory: PathBuf,
}

impl Lives {
    /// Lives the life of a volume from `step` on, to its end.
    async fn live(&self, client: &mut Client, number: usize, from: Step) {
        for step in STEPS.into_iter().filter(|step| *step >= from) {
            self.remember(step);
            repeat(async || self.take(client, number, step).await).await;
            self.check(client, number, step).await;
        }
    }

    async fn take(&self, client: &mut Client, number: usize, step: Step) -> Result<(), Status> {
        let (id, staging) = (id(number), staging(number));
        match step {
            Step::Create => client.create(&name(number), self.size, self.mode).await.map(drop),
            Step::Stage => client.stage(&id, &staging, self.mode).await,
            Step::Expand => client.expand(&id, 2 * self.size, self.mode).await.map(drop),
            Step::Unstage => client.unstage(&id, &staging).await,
            Step::Delete => client.delete(&id).await,
        }
    }

    /// What must hold after a step. The user writes to the volume once it is staged, and to what it has
    /// been given once it has grown.
    async fn check(&self, client: &mut Client, number: usize, step: Step) {
        let name = name(number);
        let size = if step >= Step::Expand { 2 * self.size } else { self.size };
        match (step, self.mode) {
            (Step::Create | Step::Unstage, _) => return,
            (Step::Stage, Mode::Block) => {
                holds_only(&device(&name), 0, size, 0);
                fill(&device(&name), 0, size, DATA);
            }
            (Step::Expand, Mode::Block) => {
                holds_only(&device(&name), 0, self.size, DATA);
                holds_only(&device(&name), self.size, size, 0);
                fill(&device(&name), self.size, size, DATA);
            }
            (Step::Stage, _) => self.write_file(number),
            (Step::Expand, _) => {
                assert_eq!(bench::size_of_staged(number, self.mode), size, "{}", trap::passed());
                assert_eq!(mounts_at(&staging(number)), 1);
                self.check_file(number);
            }
            (Step::Delete, _) => {
                holds_exactly([]);
                assert_eq!(client.capacity().await.unwrap().0, free());
                return;
            }
        }
        holds_exactly([(name.as_str(), size, "u")]);
    }

    fn file(number: usize) -> PathBuf {
        staging(number).join("data")
    }

    fn write_file(&self, number: usize) {
        let mut file = File::create(Self::file(number)).unwrap();
        file.write_all(&[DATA; 100_000]).unwrap();
        file.sync_all().unwrap();
        File::open(staging(number)).unwrap().sync_all().unwrap();
    }

    fn check_file(&self, number: usize) {
        assert_eq!(fs::read(Self::file(number)).unwrap(), [DATA; 100_000]);
    }

    /// Goes on with a life that a power cut has interrupted, as a cluster does: what was staged is staged
    /// again, and the call that got no answer is repeated, in either order.
    async fn resume(&self, client: &mut Client, number: usize, step: Step) {
        if step == Step::Expand {
            if number.is_multiple_of(2) {
                repeat(async || self.take(client, number, step).await).await;
            }
            repeat(async || self.take(client, number, Step::Stage).await).await;
            if self.mode != Mode::Block {
                self.check_file(number);
            }
        }
        self.live(client, number, step).await;
    }

    /// Goes through one life after another. In each the power is cut one change later than in the one
    /// before, until there is one in which no change is left to be cut.
    fn go(&self, machine: &lab::Machine) {
        machine.boot(|| {
            make_group(VG, &lab::disks());
            dirty_free_space();
        });
        let mut number = 0;
        while self.remembered() != "all" {
            number += 1;
            machine.boot_until_power_cut(|| driver::run(self.one_boot(number)));
        }
        assert!(number > FEWEST, "the trap has not sprung");
    }

    async fn one_boot(&self, number: usize) {
        count_mkfs();
        let before = lvs();
        let driver = child::start().await;
        let mut client = driver.client().await;
        let interrupted = STEPS.into_iter().find(|step| format!("{step:?}") == self.remembered());
        if let Some(step) = interrupted {
            self.resume(&mut client, number - 1, step).await;
            let prepared = before.values().any(|lv| lv.state == "f" || lv.state == "u");
            assert!(mkfs_runs() <= usize::from(!prepared), "formatted although it was {before:?}");
        }
        client.capacity().await.unwrap();
        trap::set(End::Cut, number);
        self.live(&mut client, number, Step::Create).await;
        self.write("all");
        lab::power_cut();
    }

    fn remember(&self, step: Step) {
        self.write(&format!("{step:?}"));
    }

    fn write(&self, text: &str) {
        let mut file = File::create(self.memory.join("step")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
    }

    fn remembered(&self) -> String {
        fs::read_to_string(self.memory.join("step")).unwrap_or_default()
    }
}

/// Lives volumes of that kind on a machine whose memory outlives it.
fn cut_lives(mode: Mode, size: u64) {
    let fresh = tempfile::tempdir().unwrap();
    let memory = std::env::var_os(MEMORY).map_or_else(|| fresh.path().to_owned(), PathBuf::from);
    let machine = lab::Machine::new().disk("1G").share(&memory).env(MEMORY, &memory);
    assert!(Path::new(&memory).is_absolute());
    Lives { mode, size, memory }.go(&machine);
}

#[test]
fn a_power_cut_around_any_change_in_the_life_of_a_mounted_volume_does_no_harm() {
    cut_lives(Mode::Ext4, 16 * MIB);
}

#[test]
fn a_power_cut_around_any_change_in_the_life_of_an_xfs_volume_does_no_harm() {
    cut_lives(Mode::Xfs, Mode::Xfs.size());
}

#[test]
fn a_power_cut_around_any_change_in_the_life_of_a_btrfs_volume_does_no_harm() {
    cut_lives(Mode::Btrfs, Mode::Btrfs.size());
}

#[test]
fn a_power_cut_around_any_change_in_the_life_of_a_raw_volume_does_no_harm() {
    cut_lives(Mode::Block, 4 * MIB);
}
