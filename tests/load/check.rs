//! The machine as it is, held against what the ledger knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use quarry::types::LvName;

use super::facts::{Fact, Facts, NOTHING};
use super::ledger::Ledger;
use super::slot::Slot;
use super::user;
use crate::crash::bench::{self, Lv};
use crate::driver::{Client, Driver, Mode, VG, Volume, command, report, until};

/// The folder below which all mounts are.
const MOUNTS: &str = "/var/lib/kubelet/";

/// Looks at the machine of a driver that nobody asks anything, and holds that all is as the ledger says:
/// what was answered is there, nothing else is, and the group adds up. What was open is settled by it.
pub(super) async fn check(ledger: &Ledger, driver: &Driver, vg: &str) {
    at_rest(ledger).await;
    let client = driver.client().await;
    let machine = Machine::look();
    for slot in Slot::all() {
        match machine.volume(slot, &slot.volume(&client, vg), &ledger.facts(slot)) {
            Ok(facts) => ledger.seen(slot, facts),
            Err(wrong) => panic!("{wrong}\n{}", ledger.tale(slot)),
        }
    }
    machine.nothing_leaked(ledger);
    machine.adds_up(client).await;
}

/// Waits until the driver has taken up what others have left undone.
async fn at_rest(ledger: &Ledger) {
    let unfinished = || {
        let lvs = bench::lvs();
        let known = known(&lvs, ledger);
        let is_done = |name: &String, lv: &Lv| lv.state != "b" && known.contains(name);
        lvs.into_iter().filter(|(name, lv)| !is_done(name, lv)).map(|(name, _)| name).collect::<Vec<_>>()
    };
    for name in unfinished() {
        until(&format!("{name} is prepared or removed"), async || !unfinished().contains(&name)).await;
    }
}

/// The names that LVs may have: of volumes, and of the hidden ones of expansions that are open.
fn known(lvs: &BTreeMap<String, Lv>, ledger: &Ledger) -> BTreeSet<String> {
    let names = Slot::all().flat_map(|slot| {
        let lv = lvs.get(&slot.name());
        let open = lv.filter(|lv| ledger.facts(slot).most > lv.size);
        [Some(slot.name()), open.map(hidden)]
    });
    names.flatten().collect()
}

/// What stock LVM and the kernel show.
struct Machine {
    lvs: BTreeMap<String, Lv>,
    devices: Vec<(String, bool)>,
    /// Where something is mounted, and what.
    mounts: Vec<(String, PathBuf)>,
    locks: Vec<String>,
}

impl Machine {
    fn look() -> Self {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = table.lines().filter_map(mount);
        Self {
            lvs: bench::lvs(),
            devices: bench::devices(),
            mounts: mounts.filter(|(point, _)| point.starts_with(MOUNTS)).collect(),
            locks: bench::lock_files(),
        }
    }

    /// Holds a volume against what is known of it, and gives what is known now.
    fn volume(&self, slot: Slot, volume: &Volume, facts: &Facts) -> Result<Facts, String> {
        let (staged, published) = (self.mounted(&volume.staging)?, self.mounted(&volume.target)?);
        let lv = self.lvs.get(&slot.name());
        holds(facts.exists.may_be(lv.is_some()), || {
            format!("it exists: {:?}, but found: {lv:?}", facts.exists)
        })?;
        let Some(lv) = lv else {
            return holds(!staged && !published, || "it is gone and mounted".to_owned())
                .map(|()| Facts::ABSENT);
        };
        let used = lv.state == "u";
        holds((facts.least..=facts.most).contains(&lv.size), || format!("{facts:?}, but found: {lv:?}"))?;
        holds(used || lv.state == "f", || format!("its state is {:?}", lv.state))?;
        holds(facts.used.may_be(used), || format!("it was used: {:?}, but found: {lv:?}", facts.used))?;
        holds(facts.published.may_be(published), || {
            format!("published: {:?}, not {published}", facts.published)
        })?;
        let mut seen = Facts {
            exists: Fact::Yes,
            used: Fact::of(used),
            published: Fact::of(published),
            ..facts.clone()
        };
        if !self.lvs.contains_key(&hidden(lv)) {
            seen.most = lv.size;
        }
        match slot.mode() {
            Mode::Block => holds(!staged, || "a raw volume is mounted at its staging path".to_owned())?,
            Mode::Ext4 | Mode::Xfs | Mode::Btrfs => {
                holds(facts.staged.may_be(staged), || format!("staged: {:?}, not {staged}", facts.staged))?;
                seen.staged = Fact::of(staged);
            }
        }
        if slot.mode() != Mode::Block && (staged || published) {
            let place = if staged { &volume.staging } else { &volume.target };
            let size = bench::size_of_mounted(&slot.device(), place, slot.mode());
            holds((facts.least..=lv.size).contains(&size), || {
                format!("its file system has {size}: {facts:?}")
            })?;
        }
        if published {
            let found = user::read(slot.mode(), &volume.target, facts)?;
            let settled = |place: &u64| BTreeSet::from([found.get(place).copied().unwrap_or(NOTHING)]);
            seen.content = facts.content.keys().map(|place| (*place, settled(place))).collect();
        }
        for (path, _) in [(&volume.staging, staged), (&volume.target, published)].iter().filter(|(_, is)| *is)
        {
            holds(self.shows(path, slot.mode()) == number(&slot.device()), || {
                format!("{} shows another device", path.display())
            })?;
        }
        Ok(seen)
    }

    /// Whether something is mounted there. It may be once only.
    fn mounted(&self, path: &Path) -> Result<bool, String> {
        match self.mounts.iter().filter(|(point, _)| Path::new(point) == path).count() {
            count @ 0..2 => Ok(count == 1),
            count => Err(format!("{count} mounts lie at {}", path.display())),
        }
    }

    /// The number of the device that is at a path, or whose file system is mounted there. btrfs has a number of
    /// its own, and tells by the mount table only what it lies on.
    fn shows(&self, path: &Path, mode: Mode) -> u64 {
        let there = fs::metadata(path).unwrap();
        match self.mounts.iter().find(|(point, _)| Path::new(point) == path) {
            Some((_, source)) if mode == Mode::Btrfs => number(source),
            _ if there.is_dir() => there.st_dev(),
            _ => there.st_rdev(),
        }
    }

    /// Holds that nothing is there that no volume needs.
    #[track_caller]
    fn nothing_leaked(&self, ledger: &Ledger) {
        let known = known(&self.lvs, ledger);
        for name in self.lvs.keys() {
            assert!(known.contains(name), "{name} is nobody's");
        }
        for (device, suspended) in &self.devices {
            let of_lv = |name: &String| bench::device(name).ends_with(device);
            assert!(self.lvs.keys().any(of_lv), "the device {device} has no LV");
            assert!(!suspended, "the device {device} is suspended");
        }
        for lock in &self.locks {
            let is_of = |lv: &Lv| {
                *lock == lv.uuid || (*lock == format!("{}.growth", lv.uuid) && known.contains(&hidden(lv)))
            };
            assert!(self.lvs.values().any(is_of), "the lock file {lock} belongs to nothing");
        }
        let places: BTreeSet<String> = Slot::all().flat_map(Slot::places).collect();
        for (point, _) in &self.mounts {
            assert!(places.contains(point), "{point} is mounted, and nobody has asked for it");
        }
    }

    /// Holds that no extent is given away twice, and that the driver says what is free.
    async fn adds_up(&self, mut client: Client) {
        command("vgck", &["-q", VG]);
        let row = report("vgs", "vg_size,vg_free", VG).remove(0);
        let (size, free) = row.split_once('|').unwrap();
        let (size, free): (u64, u64) = (size.parse().unwrap(), free.parse().unwrap());
        let given: u64 = self.lvs.values().map(|lv| lv.size).sum();
        assert_eq!(given + free, size, "{:?}", self.lvs);
        assert_eq!(client.capacity().await.unwrap().0, free);
    }
}

/// The name of the hidden LV by which this one grows.
fn hidden(lv: &Lv) -> String {
    LvName::for_growth(&lv.uuid.parse().unwrap()).to_string()
}

/// Where a line of the mount table has something mounted, and what (proc(5), `mountinfo`).
fn mount(line: &str) -> Option<(String, PathBuf)> {
    let (place, kind) = line.split_once(" - ")?;
    Some((place.split(' ').nth(4)?.to_owned(), kind.split(' ').nth(1)?.into()))
}

/// The number of the device at a path.
fn number(path: &Path) -> u64 {
    fs::metadata(path).unwrap().st_rdev()
}

fn holds(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise()) }
}
