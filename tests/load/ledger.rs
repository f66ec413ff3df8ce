//! What was asked and what was answered, on a disk that outlives the machine, and what follows from it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as Turn;

use super::SLOTS;
use super::call::{Call, Outcome};
use super::facts::Facts;
use super::slot::Slot;

/// A line of the ledger.
#[derive(Debug, Serialize, Deserialize)]
enum Line {
    Asked {
        slot: usize,
        call: Call,
    },
    Came {
        slot: usize,
        call: Call,
        outcome: Outcome,
    },
    /// Somebody has looked at the machine.
    Seen {
        slot: usize,
        facts: Facts,
    },
    PowerCut,
}

/// What is known of all volumes.
struct Books {
    file: File,
    /// What is known of each volume now.
    now: Vec<Facts>,
    /// What was known of each before the call that runs.
    before: Vec<Facts>,
    /// How often each kind of call was done.
    done: BTreeMap<String, u64>,
}

/// The ledger. Whoever asks something about a volume tells it before, and tells what came of it after.
pub(super) struct Ledger {
    books: Mutex<Books>,
    /// One call at a time for each volume, so that it is clear what changed it.
    turns: Vec<Turn<()>>,
}

impl Ledger {
    /// Opens the ledger in that file, and goes through all that it tells.
    pub(super) fn open(path: &Path) -> Self {
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        // The last line may not have been written to its end.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        let absent = vec![Facts::ABSENT; SLOTS];
        let mut books = Books { file, now: absent.clone(), before: absent, done: BTreeMap::new() };
        let lines = text[..whole].lines().map(|line| serde_json::from_str(line).unwrap());
        let wrong: Vec<(Slot, String)> = lines.filter_map(|line| books.apply(&line)).collect();
        let ledger = Self { books: Mutex::new(books), turns: Slot::all().map(|_| Turn::default()).collect() };
        // What was wrong just before the power was cut is wrong still.
        if let Some((slot, wrong)) = wrong.first() {
            panic!("{wrong}\n{}", ledger.tale(*slot));
        }
        ledger
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// The turn of whoever works with that volume; `None` while somebody else does.
    pub(super) fn turn(&self, slot: Slot) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.turns[slot.0].try_lock().ok()
    }

    /// What is known of a volume.
    pub(super) fn facts(&self, slot: Slot) -> Facts {
        self.books().now[slot.0].clone()
    }

    /// A call is about to be made.
    pub(super) fn asks(&self, slot: Slot, call: Call) {
        self.books().write(&Line::Asked { slot: slot.0, call });
    }

    /// That came of the call. A wrong answer ends the test.
    #[track_caller]
    pub(super) fn came(&self, slot: Slot, call: Call, outcome: Outcome) {
        let wrong = self.books().write(&Line::Came { slot: slot.0, call, outcome });
        if let Some((_, wrong)) = wrong {
            panic!("{wrong}\n{}", self.tale(slot));
        }
    }

    /// That was seen of a volume.
    pub(super) fn seen(&self, slot: Slot, facts: Facts) {
        if facts != self.facts(slot) {
            self.books().write(&Line::Seen { slot: slot.0, facts });
        }
    }

    /// The volumes that may exist.
    pub(super) fn living(&self) -> Vec<Slot> {
        let books = self.books();
        Slot::all().filter(|slot| books.now[slot.0].exists.may_be(true)).collect()
    }

    /// The power was cut since the ledger was closed.
    pub(super) fn power_cut(&self) {
        self.books().write(&Line::PowerCut);
    }

    /// How often each kind of call was done.
    pub(super) fn done(&self) -> BTreeMap<String, u64> {
        self.books().done.clone()
    }

    /// The last things that befell a volume, for the message of a test that fails.
    pub(super) fn tale(&self, slot: Slot) -> String {
        const LINES: usize = 30;
        let mut books = self.books();
        let mut text = String::new();
        books.file.seek(SeekFrom::Start(0)).unwrap();
        books.file.read_to_string(&mut text).unwrap();
        let own = format!("\"slot\":{},", slot.0);
        let lines: Vec<&str> =
            text.lines().filter(|line| line.contains(&own) || line.contains("PowerCut")).collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        format!("{} ({:?}) has seen this:\n{}", slot.name(), slot.mode(), last.join("\n"))
    }
}

impl Books {
    /// Writes a line down for good, and draws its consequences. Gives what is wrong with it.
    fn write(&mut self, line: &Line) -> Option<(Slot, String)> {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).unwrap();
        self.apply(line)
    }

    fn apply(&mut self, line: &Line) -> Option<(Slot, String)> {
        match line {
            Line::Asked { slot, call } => {
                self.before[*slot] = self.now[*slot].clone();
                self.now[*slot] = self.before[*slot].while_open(call);
            }
            Line::Came { slot, call, outcome } => return self.came(Slot(*slot), call, outcome),
            Line::Seen { slot, facts } => self.now[*slot] = facts.clone(),
            Line::PowerCut => self.now.iter_mut().for_each(Facts::lose_mounts),
        }
        None
    }

    fn came(&mut self, slot: Slot, call: &Call, outcome: &Outcome) -> Option<(Slot, String)> {
        let before = &self.before[slot.0];
        let wrong = before.wrong(slot.mode(), call, outcome);
        match outcome {
            Outcome::Done { size } => {
                self.now[slot.0] = before.after(call).with_size(*size);
                *self.done.entry(kind(call)).or_default() += 1;
            }
            Outcome::Refused { .. } => self.now[slot.0] = before.clone(),
            Outcome::Open | Outcome::Wrong { .. } => {}
        }
        wrong.map(|wrong| (slot, wrong))
    }
}

/// The name of a call's kind.
fn kind(call: &Call) -> String {
    let text = format!("{call:?}");
    text.split(' ').next().unwrap_or_default().to_owned()
}
