//! One story of a volume group, played on LVM in memory by a unit test and on the real one by a lab test.
//! Both must tell the same: see `contract.txt`.

use std::fmt::Write as _;

// Whoever plays it brings these names: the crate has others for them than the lab's tests.
use super::{Command, Engine, Extents, LvName, PeRange, Reply, VgName};

/// What both must tell.
const EXPECTED: &str = include_str!("contract.txt");

/// How many extents of 4 MiB each of the group's two disks has.
pub(super) const EXTENTS: u64 = 63;

/// What happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The engine is given a command.
    Run(Command),
    /// Somebody opens the LV's device.
    Open(&'static str),
    /// And closes all that is open.
    CloseAll,
    /// The LV's device is left suspended.
    Suspend(&'static str),
    /// The LV's device is taken away.
    Deactivate(&'static str),
}

fn lv(name: &str) -> LvName {
    name.parse().unwrap()
}

fn create(name: &str, extents: u64, tags: &[&str]) -> Step {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Step::Run(Command::Create { name: lv(name), extents: Extents::new(extents), tags })
}

fn extend(name: &str, to: u64, from: &[(&str, u64, u64)]) -> Step {
    let range = |(device, first, last): &(&str, u64, u64)| PeRange {
        device: (*device).to_owned(),
        first: *first,
        last: *last,
    };
    let from = from.iter().map(range).collect();
    Step::Run(Command::Extend { name: lv(name), to: Extents::new(to), from })
}

fn retag(name: &str, remove: &str, add: &str) -> Step {
    Step::Run(Command::Retag { name: lv(name), remove: remove.to_owned(), add: add.to_owned() })
}

/// The story, on the disks `one` and `two`.
pub(super) fn steps(one: &str, two: &str) -> Vec<Step> {
    let run = Step::Run;
    vec![
        run(Command::Volumes),
        create("a", 3, &["q.s=b", "q.n=x"]),
        create("a", 3, &[]),
        create("b", 1000, &[]),
        create("b", 123, &["q.s=b"]),
        create("c", 1, &[]),
        run(Command::Remove(lv("b"))),
        run(Command::Remove(lv("b"))),
        extend("a", 5, &[(two, 10, 11)]),
        extend("a", 5, &[(two, 30, 31)]),
        extend("a", 4, &[]),
        extend("a", 7, &[(two, 10, 11)]),
        extend("a", 8, &[(two, 11, 13)]),
        extend("a", 7, &[(one, 40, 40), (two, 20, 20)]),
        extend("nope", 1, &[]),
        run(Command::Segments(lv("a"))),
        run(Command::Segments(lv("nope"))),
        retag("a", "q.s=b", "q.s=f"),
        retag("a", "q.s=b", "q.s=f"),
        retag("nope", "x", "y"),
        run(Command::Activate(lv("a"))),
        run(Command::Activate(lv("nope"))),
        run(Command::Refresh(lv("nope"))),
        Step::Deactivate("a"),
        run(Command::Refresh(lv("a"))),
        extend("a", 8, &[]),
        retag("a", "q.s=f", "q.s=u"),
        run(Command::Activate(lv("a"))),
        Step::Suspend("a"),
        run(Command::Volume(lv("a"))),
        retag("a", "q.s=u", "q.s=x"),
        run(Command::Refresh(lv("a"))),
        Step::Suspend("a"),
        run(Command::Activate(lv("a"))),
        Step::Open("a"),
        run(Command::Remove(lv("a"))),
        extend("a", 9, &[]),
        Step::CloseAll,
        run(Command::Volume(lv("nope"))),
        run(Command::Remove(lv("a"))),
        run(Command::Group),
    ]
}

/// Gives the steps to an engine one by one and writes down what becomes of the group. `act` does what is
/// no command.
pub(super) async fn play(engine: &dyn Engine, vg: &VgName, disks: [&str; 2], act: impl Fn(&Step)) -> String {
    let mut story = String::new();
    for step in steps(disks[0], disks[1]) {
        let outcome = match &step {
            Step::Run(command) => {
                let reply = engine.run(vg, command).await.unwrap();
                assert!(reply.success || !reply.messages.is_empty(), "{reply:?}");
                format!("{command}: {}", result(&reply))
            }
            other => {
                act(other);
                format!("{other:?}")
            }
        };
        let state = state(engine, vg).await;
        writeln!(story, "{outcome}\n    {state}").unwrap();
    }
    story.replace(" \n", "\n").replace(disks[0], "/dev/one").replace(disks[1], "/dev/two")
}

/// Compares a story with what it should be, line by line.
pub(super) fn compare(story: &str) {
    let mut before = "";
    for (number, (told, expected)) in story.lines().zip(EXPECTED.lines()).enumerate() {
        assert_eq!(told, expected, "line {}, after {before}\nThe whole story:\n{story}", number + 1);
        before = told;
    }
    assert_eq!(story.lines().count(), EXPECTED.lines().count(), "{story}");
}

fn result(reply: &Reply) -> String {
    let ranges = reply.segments.iter().flat_map(|segment| &segment.ranges);
    // In which order an LV gets the extents that it is given is LVM's affair.
    let mut ranges: Vec<String> = ranges.map(ToString::to_string).collect();
    ranges.sort();
    let done = if reply.success { "done" } else { "refused" };
    format!("{done} {} vgs, {} lvs, {ranges:?}", reply.vgs.len(), reply.lvs.len())
}

async fn state(engine: &dyn Engine, vg: &VgName) -> String {
    let group = engine.run(vg, &Command::Group).await.unwrap().vgs.remove(0);
    let mut state =
        format!("seqno {}, {} of {} free, {} lvs", group.seqno, group.free, group.extents, group.lv_count);
    for lv in engine.run(vg, &Command::Volumes).await.unwrap().lvs {
        let flags =
            [(lv.active, "active"), (lv.open, "open"), (lv.suspended, "suspended"), (lv.partial, "partial")];
        let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
        write!(state, "; {} {} {} {} {}", lv.name, lv.size, lv.kind, lv.tags.join(","), flags.join(","))
            .unwrap();
    }
    state
}
