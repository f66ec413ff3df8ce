//! What LVM 2.03.16 really wrote, in a guest: see `testdata`. Fields that were asked for later are added in the words
//! in which it writes them.

use super::*;
use crate::lvm::Unallocatable;
use crate::types::{Bytes, Extents, LvName};

macro_rules! captured {
    ($name:literal) => {
        include_bytes!(concat!("testdata/", $name, ".json"))
    };
}

fn shell(command: &Command, name: &str, bytes: &[u8]) -> Result<Reply, EngineError> {
    reply(command, Verdict::Logged(name), bytes)
}

fn lv(name: &str) -> LvName {
    name.parse().unwrap()
}

fn unreadable<T: std::fmt::Debug>(result: Result<T, EngineError>, part: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, EngineError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_group_is_read() {
    let reply = shell(&Command::Group, "vgs", captured!("group")).unwrap();
    let [vg] = &reply.vgs[..] else { panic!("{reply:?}") };
    assert!(reply.success && reply.messages.is_empty());
    assert_eq!(
        (vg.name.as_str(), vg.extents, vg.extent_size.bytes()),
        ("vg0", Extents::new(62), Bytes::mib(4))
    );
    assert!(!vg.exported && !vg.shared && vg.system_id.is_none() && vg.missing_pvs == 0);
    assert!(vg.seqno > 1 && vg.metadata_size > vg.metadata_free && vg.metadata_free > Bytes::ZERO);
}

#[test]
fn the_disks_of_a_group_that_take_no_new_extents_are_read() {
    let reply = shell(&Command::Group, "vgs", captured!("group")).unwrap();
    assert_eq!(reply.unallocatable, [Unallocatable { device: "/dev/ubdb".into(), free: Extents::new(24) }]);
    let partial = shell(&Command::Group, "vgs", captured!("partial-group")).unwrap();
    assert_eq!(partial.unallocatable, [], "one that is missing is none");
    for (good, bad) in [
        ("\"pv_pe_alloc_count\":\"", "\"pv_pe_alloc_count\":\"9999"),
        ("\"pv_allocatable\":\"allocatable\"", "\"pv_allocatable\":\"1\""),
    ] {
        let broken = String::from_utf8_lossy(captured!("group")).replacen(good, bad, 1);
        let field = good.split('"').nth(1).unwrap();
        unreadable(shell(&Command::Group, "vgs", broken.as_bytes()), field);
    }
}

#[test]
fn volumes_of_every_kind_are_read_in_one_report() {
    let reply = shell(&Command::Volumes, "lvs", captured!("volumes")).unwrap();
    let find = |name: &str| reply.lvs.iter().find(|lv| lv.name == name).unwrap();
    assert_eq!(find("lin").tags, ["q.n=a!2fb", "q.v=1"]);
    assert!(find("lin").active && find("lin").origin && find("lin").created.is_some());
    assert!(find("open").open && !find("lin").open);
    assert!(find("susp").suspended && !find("open").suspended);
    let off = find("off");
    assert!(!off.active && !off.open && !off.suspended && off.tags.is_empty());
    assert_eq!((find("off").kind.as_str(), find("str").kind.as_str()), ("linear", "linear,striped"));
    assert!(reply.lvs.iter().all(|lv| !lv.partial && lv.vg.is_none()));
}

#[test]
fn one_volume_comes_with_its_group() {
    let reply = shell(&Command::Volume(lv("lin")), "lvs", captured!("volume")).unwrap();
    let [row] = &reply.lvs[..] else { panic!("{reply:?}") };
    assert_eq!((row.size, row.vg.as_ref().unwrap().name.as_str()), (Bytes::mib(12), "vg0"));
    let process = reply_of_process(&Command::Volume(lv("lin")), true, captured!("process-volume"));
    assert_eq!((&process.lvs[0].uuid, &process.lvs[0].tags), (&row.uuid, &row.tags));
}

fn reply_of_process(command: &Command, success: bool, bytes: &[u8]) -> Reply {
    super::reply(command, Verdict::Exited(success), bytes).unwrap()
}

#[test]
fn segments_are_read_with_their_places() {
    let reply = shell(&Command::Segments(lv("str")), "lvs", captured!("segments")).unwrap();
    let kinds: Vec<_> = reply.segments.iter().map(|s| (s.kind.as_str(), s.ranges.len())).collect();
    assert_eq!(kinds, [("striped", 2), ("linear", 1)]);
}

#[test]
fn what_is_absent_is_a_failure_and_never_an_empty_success() {
    let absent = shell(&Command::Volume(lv("nope")), "lvs", captured!("volume-absent")).unwrap();
    let group = shell(&Command::Group, "vgs", captured!("group-absent")).unwrap();
    let foreign = shell(&Command::Group, "vgs", captured!("foreign-group")).unwrap();
    let process = reply_of_process(&Command::Volume(lv("nope")), false, captured!("process-volume-absent"));
    for reply in [absent, group, foreign, process] {
        assert!(!reply.success && reply.lvs.is_empty() && reply.vgs.is_empty(), "{reply:?}");
        assert!(!reply.messages.is_empty());
    }
}

#[test]
fn changes_say_whether_they_were_made_and_why_not() {
    let command = Command::Create { name: lv("c"), extents: Extents::new(3), tags: vec![] };
    let made = shell(&command, "lvcreate", captured!("create")).unwrap();
    assert!(made.success && made.messages.is_empty());
    for (bytes, part) in [
        (&captured!("create-again")[..], "already exists"),
        (captured!("create-no-room"), "insufficient free space"),
    ] {
        let reply = shell(&command, "lvcreate", bytes).unwrap();
        assert!(!reply.success && reply.messages[0].contains(part), "{reply:?}");
    }
    let bad = shell(&command, "lvs", captured!("bad-argument")).unwrap();
    assert!(!bad.success && !bad.messages.is_empty());
    assert!(reply_of_process(&command, true, captured!("process-create")).success);
    let again = reply_of_process(&command, false, captured!("process-create-again"));
    assert!(!again.success && again.messages[0].contains("already exists"));
    assert!(!reply_of_process(&command, false, b"").success);
}

#[test]
fn an_answer_that_is_none_is_an_error() {
    let command = Command::Volumes;
    unreadable(shell(&command, "lvs", b""), "no JSON object");
    unreadable(shell(&command, "lvs", b"{\n\"log\": [oops]\n}\n"), "not the JSON expected");
    unreadable(shell(&command, "lvs", b"{\n\"log\": [\n]\n}\n"), "how the command ended");
    unreadable(shell(&command, "lvs", captured!("create")), "another command");
    unreadable(shell(&command, "vgs", captured!("group")), "no list \"lv\"");
    unreadable(shell(&Command::Group, "lvs", captured!("volumes")), "no list \"vg\"");
    unreadable(super::reply(&command, Verdict::Exited(true), b"{\n\"log\": [\n]\n}\n"), "no list");
    unreadable(super::reply(&command, Verdict::Exited(false), b""), "no JSON object");
}

#[test]
fn foreign_lines_before_and_after_are_passed_over_and_within_they_are_an_error() {
    let text = String::from_utf8_lossy(captured!("volumes")).into_owned();
    let around = format!("a line\n  WARNING: another\n{text}and one more\n");
    let plain = shell(&Command::Volumes, "lvs", text.as_bytes()).unwrap();
    assert_eq!(shell(&Command::Volumes, "lvs", around.as_bytes()).unwrap(), plain);
    let within = text.replacen("\"lv\": [\n", "\"lv\": [\nWARNING: a line\n", 1);
    unreadable(shell(&Command::Volumes, "lvs", within.as_bytes()), "not the JSON expected");
}

#[test]
fn an_lv_whose_row_makes_no_sense_is_there_all_the_same_and_costs_no_other() {
    let text = String::from_utf8_lossy(captured!("volumes")).into_owned();
    let all = shell(&Command::Volumes, "lvs", text.as_bytes()).unwrap().lvs.len();
    for (good, bad) in [
        ("\"lv_size\":\"8388608\"", "\"lv_size\":\"-1\""),
        ("\"lv_size\":\"8388608\"", "\"lv_size\":\"\""),
        ("\"lv_size\":\"8388608\"", "\"lv_size\":\"unknown\""),
        ("\"lv_size\":\"8388608\", ", ""),
        ("\"lv_size\":\"8388608\"", "\"lv_size\":8388608"),
        ("\"lv_suspended\":\"suspended\"", "\"lv_suspended\":\"unknown\""),
        ("\"lv_device_open\":\"open\"", "\"lv_device_open\":\"-1\""),
    ] {
        let broken = text.replacen(good, bad, 1);
        assert_ne!(broken, text);
        let reply = shell(&Command::Volumes, "lvs", broken.as_bytes()).unwrap();
        assert_eq!((reply.success, reply.lvs.len()), (true, all), "{bad}");
        let faulty: Vec<_> = reply.lvs.iter().filter(|lv| lv.fault.is_some()).collect();
        let [lv] = &faulty[..] else { panic!("{bad}: {faulty:?}") };
        assert!(!lv.name.is_empty() && lv.tags.is_empty(), "{lv:?}");
    }
    for field in ["lv_name", "lv_uuid"] {
        let text = text.replacen(&format!("\"{field}\":"), "\"x\":", 1);
        unreadable(shell(&Command::Volumes, "lvs", text.as_bytes()), field);
    }
}

/// What an lvcreate leaves that is killed before the device has its table.
#[test]
fn a_device_without_a_table_is_no_device_yet() {
    let text = String::from_utf8_lossy(captured!("volumes")).into_owned();
    let row = text.lines().find(|line| line.contains("\"lv_suspended\":\"suspended\"")).unwrap();
    let (without, waiting) = (
        row.replace("\"suspended\"", "\"unknown\"")
            .replace("\"lv_device_open\":\"\"", "\"lv_device_open\":\"unknown\""),
        row.replace("\"suspended\"", "\"\""),
    );
    for (letter, row_now) in [("X", without.clone()), ("d", without), ("i", waiting)] {
        let row_now = row_now.replace("\"-wi-s-----\"", &format!("\"-wi-{letter}-----\""));
        let reply = shell(&Command::Volumes, "lvs", text.replace(row, &row_now).as_bytes()).unwrap();
        let lv = reply.lvs.iter().find(|lv| lv.name == "susp").unwrap();
        assert!(lv.fault.is_none() && !lv.active && !lv.open && !lv.suspended, "{letter}: {lv:?}");
    }
}

#[test]
fn where_one_thing_was_asked_for_it_must_be_readable() {
    let broken = |bytes: &[u8], field: &str| {
        String::from_utf8_lossy(bytes).replace(&format!("\"{field}\":\""), &format!("\"{field}\":\"?"))
    };
    let volume = Command::Volume(lv("lin"));
    for field in ["lv_size", "vg_seqno", "vg_uuid"] {
        let text = broken(captured!("volume"), field);
        unreadable(shell(&volume, "lvs", text.as_bytes()), field);
    }
    unreadable(
        shell(&Command::Group, "vgs", broken(captured!("group"), "vg_free_count").as_bytes()),
        "vg_free_count",
    );
    let zero = String::from_utf8_lossy(captured!("group")).replace("\"4194304\"", "\"0\"");
    unreadable(shell(&Command::Group, "vgs", zero.as_bytes()), "vg_extent_size");
    let segments = broken(captured!("segments"), "seg_pe_ranges");
    unreadable(shell(&Command::Segments(lv("str")), "lvs", segments.as_bytes()), "seg_pe_ranges");
}

#[test]
fn missing_disks_show() {
    let vg = &shell(&Command::Group, "vgs", captured!("partial-group")).unwrap().vgs[0];
    assert_eq!(vg.missing_pvs, 1);
    let lvs = shell(&Command::Volumes, "lvs", captured!("partial-volumes")).unwrap().lvs;
    assert!(lvs.iter().find(|lv| lv.name == "both").unwrap().partial);
}

#[test]
fn a_look_shows_every_group_in_whatever_state() {
    let rows = look(captured!("look")).unwrap();
    let of = |name: &str| -> Vec<_> {
        rows.iter().filter(|r| r.vg.as_ref().is_some_and(|vg| vg.name.as_str() == name)).collect()
    };
    let vg = |name: &str| of(name)[0].vg.clone().unwrap();
    assert_eq!((of("vg0").len(), of("part").len(), of("same").len()), (2, 2, 2));
    assert!(of("part").iter().any(|row| row.device.is_none()) && vg("part").missing_pvs == 1);
    let same = of("same");
    assert_ne!(same[0].vg.as_ref().unwrap().uuid, same[1].vg.as_ref().unwrap().uuid);
    assert!(vg("exp").exported && vg("shr").shared && vg("frn").system_id.as_deref() == Some("other"));
    assert!(rows.iter().any(|row| row.vg.is_none() && row.device.is_some()));
    assert_eq!(rows.iter().filter(|row| row.duplicate).count(), 2);
}

#[test]
fn a_disk_that_is_there_twice_shows_on_both_devices_with_one_group() {
    let rows = look(captured!("look")).unwrap();
    let [one, two] = &rows.iter().filter(|row| row.duplicate).collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((&one.uuid, &one.vg), (&two.uuid, &two.vg));
    assert_ne!(one.device, two.device);
    assert!(one.vg.as_ref().unwrap().extents > Extents::ZERO);
}

#[test]
fn a_group_of_which_one_row_makes_no_sense_is_left_out_of_the_look() {
    let text = String::from_utf8_lossy(captured!("look")).into_owned();
    let all = look(text.as_bytes()).unwrap();
    let (first, rest) = text.split_once("\"vg_name\":\"vg0\"").unwrap();
    let rest = rest.replacen("\"vg_free_count\":\"", "\"vg_free_count\":\"-", 1);
    let rows = look(format!("{first}\"vg_name\":\"vg0\"{rest}").as_bytes()).unwrap();
    assert_eq!(rows.len(), all.len() - 2);
}

#[test]
fn a_look_without_its_list_is_an_error() {
    for bytes in [&b""[..], captured!("group"), b"{\n\"log\": [\n]\n}\n"] {
        assert!(look(bytes).is_err());
    }
}
