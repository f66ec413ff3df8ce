//! The one place in which an error becomes a gRPC code.
//!
//! Codes are chosen by what the caller does next. csi-provisioner takes ABORTED and UNAVAILABLE for "may
//! still be running" and keeps to the same node, RESOURCE_EXHAUSTED for "choose another node", all others
//! for final; csi-resizer lets a user lower the request after OUT_OF_RANGE; the kubelet keeps a
//! volume's state after ABORTED and UNAVAILABLE, and drops it after the others.

use std::error::Error;

use tonic::{Code, Status};

use crate::types::chain;
use crate::volume::{EngineError, GroupError, VolumeError};

/// The longest message, in bytes: one of Kubernetes' events holds 1024.
const LONGEST: usize = 1000;

/// How much of a message that is too long is kept of its end, where programs say what went wrong.
const TAIL: usize = 400;

/// The answer to a verb's failure.
pub fn of(error: &VolumeError) -> Status {
    Status::new(code(error), message(error))
}

/// The answer to a failure of CreateVolume: whatever stands in the way of the name is said to exist.
pub fn in_create(error: &VolumeError) -> Status {
    match error {
        VolumeError::NotOurs { .. } | VolumeError::Unreadable { .. } => {
            Status::already_exists(message(error))
        }
        other => of(other),
    }
}

fn code(error: &VolumeError) -> Code {
    match error {
        VolumeError::NotFound(_) | VolumeError::NotAtPath { .. } => Code::NotFound,
        // Not seen is not gone: only whoever sees the whole group may say that.
        VolumeError::VgUnseen { .. }
        | VolumeError::Incomplete { .. }
        | VolumeError::Silent { .. }
        | VolumeError::ShuttingDown => Code::Unavailable,
        VolumeError::NoPlace(_) | VolumeError::Unusable(_) | VolumeError::NoRoom { .. } => {
            Code::ResourceExhausted
        }
        // The user may lower the request.
        VolumeError::NoRoomToGrow { .. } | VolumeError::Range(_) | VolumeError::TooSmall { .. } => {
            Code::OutOfRange
        }
        VolumeError::Options { .. } => Code::InvalidArgument,
        VolumeError::Exists { .. } | VolumeError::Incompatible { .. } => Code::AlreadyExists,
        VolumeError::Busy { .. } | VolumeError::Changed { .. } | VolumeError::Deleting(_) => Code::Aborted,
        VolumeError::InUse { .. }
        | VolumeError::NotOurs { .. }
        | VolumeError::Unreadable { .. }
        | VolumeError::State { .. }
        | VolumeError::WrongMode { .. }
        | VolumeError::NotStaged { .. }
        | VolumeError::PublishedElsewhere { .. }
        | VolumeError::Unchecked { .. }
        | VolumeError::Content { .. } => Code::FailedPrecondition,
        VolumeError::Group(error) => group_code(error),
        VolumeError::Preparation(error) => code(error),
        VolumeError::TargetTaken { .. }
        | VolumeError::Dead { .. }
        | VolumeError::Exec(_)
        | VolumeError::Parse(_)
        | VolumeError::Host { .. } => Code::Internal,
    }
}

fn group_code(error: &GroupError) -> Code {
    match error {
        GroupError::Unseen(_)
        | GroupError::Unhealthy { .. }
        | GroupError::Stuck { .. }
        | GroupError::Look(_) => Code::Unavailable,
        GroupError::Open { .. } => Code::Aborted,
        GroupError::Refused { .. } => Code::Internal,
        GroupError::Engine { source, .. } => engine_code(source),
    }
}

fn engine_code(error: &EngineError) -> Code {
    match error {
        // It may have had its effect: the repeat finds out, so nobody may take this for the end.
        EngineError::Lost { .. } | EngineError::Unreadable { .. } | EngineError::Disk { .. } => Code::Aborted,
        // Nothing was done, and nothing is known: not of the volume's absence either.
        EngineError::Exec(_) => Code::Unavailable,
        EngineError::Unspeakable(_) => Code::Internal,
    }
}

/// The error and what led to it, as one line: what a program printed on several stands between
/// semicolons.
fn message(error: &dyn Error) -> String {
    let text = chain(error);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    shortened(printable(&lines.collect::<Vec<_>>().join("; ")))
}

/// Shows control characters by their numbers: what programs print may hold them, and whoever reads this has a terminal
/// that would obey.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_debug());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Cuts the middle out of a text that is too long.
fn shortened(text: String) -> String {
    const CUT: &str = " … ";
    if text.len() <= LONGEST {
        return text;
    }
    let head = text.floor_char_boundary(LONGEST - TAIL - CUT.len());
    let tail = text.ceil_char_boundary(text.len() - TAIL);
    format!("{}{CUT}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests;
