//! The calls about a volume, and what comes of them.

use std::error::Error as _;

use serde::{Deserialize, Serialize};
use tonic::{Code, Status};

/// What a caller or a user of a volume does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Call {
    Create {
        size: u64,
    },
    Stage,
    Publish,
    /// A user writes `stamp` to a place, and sees to it that it is on the disk.
    Write {
        place: u64,
        stamp: u64,
    },
    /// A user reads all places.
    Read,
    Stats,
    Validate,
    Expand {
        size: u64,
    },
    /// NodeExpandVolume at the published path.
    NodeExpand {
        size: u64,
    },
    Unpublish,
    Unstage,
    Delete,
}

/// What comes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// It is done. The size is the volume's, where the answer has one.
    Done { size: Option<u64> },
    /// It is not done, and nothing has changed.
    Refused { code: i32, message: String },
    /// Nobody knows: come again.
    Open,
    /// A user has not found what should be there.
    Wrong { what: String },
}

impl From<Result<Option<u64>, Status>> for Outcome {
    fn from(answer: Result<Option<u64>, Status>) -> Self {
        match answer {
            Ok(size) => Self::Done { size },
            Err(status) if is_open(&status) => Self::Open,
            Err(status) => Self::Refused { code: status.code().into(), message: status.message().to_owned() },
        }
    }
}

impl Outcome {
    /// Of two calls for the same thing at the same time: done if either is, and refused only if both are.
    pub(super) fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Done { .. } | Self::Wrong { .. }, _) | (_, Self::Refused { .. }) => self,
            (_, Self::Done { .. } | Self::Wrong { .. } | Self::Open) => other,
        }
    }
}

/// Whether the answer leaves open what happened: the driver says so, or it is not the driver's at all.
pub(super) fn is_open(status: &Status) -> bool {
    let by_transport = status.source().is_some();
    by_transport
        || matches!(
            status.code(),
            Code::Aborted | Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded
        )
}

#[test]
fn what_one_of_two_calls_leaves_open_is_open() {
    let done = || Outcome::Done { size: None };
    let refused = || Outcome::Refused { code: 9, message: String::new() };
    assert_eq!(refused().or(done()), done());
    assert_eq!(done().or(Outcome::Open), done());
    assert_eq!(Outcome::Open.or(refused()), Outcome::Open);
    assert_eq!(refused().or(Outcome::Open), Outcome::Open);
    assert_eq!(refused().or(refused()), refused());
}
