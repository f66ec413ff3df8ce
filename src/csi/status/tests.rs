use std::io;

use super::*;
use crate::device::DeviceError;
use crate::exec::ExecError;
use crate::types::{Bytes, FsType, ParseError, RangeError, VolumeId};

fn id() -> VolumeId {
    "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4/pvc-1".parse().unwrap()
}

fn engine(source: EngineError) -> VolumeError {
    GroupError::Engine { vg: "vg0".parse().unwrap(), source }.into()
}

#[test]
fn codes_follow_from_what_the_caller_does_next() {
    let vg = || "vg0".parse().unwrap();
    let overdue = ExecError::Overdue { command: "lvs".into(), limit: std::time::Duration::from_secs(30) };
    let lost = EngineError::Lost { command: "lvcreate".into(), reason: "killed".into() };
    let cases = [
        (VolumeError::NotFound(id()), Code::NotFound),
        (VolumeError::VgUnseen { vg: id().vg, here: vec![] }, Code::Unavailable),
        (VolumeError::NoPlace("x".into()), Code::ResourceExhausted),
        (VolumeError::Unusable(GroupError::Unseen(id().vg)), Code::ResourceExhausted),
        (
            VolumeError::NoRoomToGrow {
                vg: vg(),
                size: Bytes::ZERO,
                wanted: Bytes::ZERO,
                free: Bytes::ZERO,
                unallocatable: Bytes::ZERO,
            },
            Code::OutOfRange,
        ),
        (
            RangeError::Contradiction { required: Bytes::mib(2), limit: Bytes::mib(1) }.into(),
            Code::OutOfRange,
        ),
        (
            VolumeError::TooSmall { fs: FsType::Xfs, asked: Bytes::mib(1), minimum: Bytes::mib(300) },
            Code::OutOfRange,
        ),
        (
            VolumeError::Options { id: id(), fs: FsType::Xfs, why: ParseError::new("x", "y", "z") },
            Code::InvalidArgument,
        ),
        (VolumeError::Exists { name: "n".parse().unwrap(), difference: "x".into() }, Code::AlreadyExists),
        (VolumeError::Busy { what: "x".into() }, Code::Aborted),
        (
            VolumeError::Changed { id: id(), why: DeviceError::Gone { number: "254:3".parse().unwrap() } },
            Code::Aborted,
        ),
        (VolumeError::InUse { id: id(), by: "x".into() }, Code::FailedPrecondition),
        (VolumeError::ShuttingDown, Code::Unavailable),
        (VolumeError::Deleting(id()), Code::Aborted),
        (GroupError::Unseen(id().vg).into(), Code::Unavailable),
        (GroupError::Open { vg: vg(), lv: id().lv }.into(), Code::Aborted),
        (GroupError::Refused { vg: vg(), what: "x".into(), messages: vec![] }.into(), Code::Internal),
        (engine(lost), Code::Aborted),
        (engine(EngineError::Exec(overdue)), Code::Unavailable),
        (engine(EngineError::Unspeakable("x".into())), Code::Internal),
        (VolumeError::host("x", io::Error::other("y")), Code::Internal),
    ];
    for (error, code) in cases {
        let status = of(&error);
        assert_eq!(status.code(), code, "{error}");
        assert!(!status.message().is_empty() && status.details().is_empty());
    }
}

#[test]
fn a_name_that_somebody_else_has_exists() {
    let error = VolumeError::NotOurs { vg: "vg0".parse().unwrap(), lv: "v-1".parse().unwrap() };
    assert_eq!(in_create(&error).code(), Code::AlreadyExists);
    assert_eq!(of(&error).code(), Code::FailedPrecondition);
    assert_eq!(in_create(&VolumeError::NotFound(id())).code(), Code::NotFound);
}

#[test]
fn the_whole_chain_is_told_and_nothing_twice() {
    let start = ExecError::Start { command: "mke2fs".into(), source: io::Error::other("no such file") };
    assert_eq!(of(&start.into()).message(), "mke2fs: cannot be run: no such file");
    let disk = EngineError::Disk { device: "/dev/a".into(), what: "flush", source: io::Error::other("dead") };
    assert_eq!(of(&engine(disk)).message(), "volume group vg0 cannot be asked: /dev/a: flush: dead");
}

#[test]
fn a_failed_preparation_says_why_in_one_line() {
    let stderr = "mke2fs 1.47.0\n/dev/a is in use\n".to_owned();
    let failed = ExecError::Failed { command: "mke2fs".into(), code: Some(1), stderr };
    let error = VolumeError::Preparation(std::sync::Arc::new(VolumeError::host("x", failed)));
    let message =
        "the volume could not be prepared: x: mke2fs: ended with code 1: mke2fs 1.47.0; /dev/a is in use";
    assert_eq!(of(&error).message(), message);
}

#[test]
fn long_messages_keep_their_beginning_and_their_end() {
    let stderr = format!("{}the reason", "ü".repeat(3000));
    let error = ExecError::Failed { command: "e2fsck /dev/a".into(), code: Some(8), stderr };
    let status = of(&error.into());
    assert!(status.message().len() <= LONGEST);
    assert!(status.message().starts_with("e2fsck /dev/a: ended with code 8"));
    assert!(status.message().ends_with("the reason"));
}

#[test]
fn what_a_terminal_would_obey_is_shown_by_its_number() {
    let said = "mke2fs: \u{1b}[2J\tä";
    let message =
        of(&VolumeError::host("it cannot be formatted", io::Error::other(said))).message().to_owned();
    assert_eq!(message, "it cannot be formatted: mke2fs: \\u{1b}[2J\\tä");
}
