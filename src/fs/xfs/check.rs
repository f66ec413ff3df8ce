use std::ffi::OsStr;
use std::path::Path;

use super::super::check::{by_code, query};
use super::super::{Check, FsError};
use crate::exec::{Program, Runner};

/// Runs `xfs_repair -n`: everything is checked, nothing written. A log that would have to be replayed is
/// passed over, so that a file system which was not unmounted may be called damaged: but one that was never
/// mounted has none.
pub(super) async fn run(runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
    let invocation = query(Program::XfsRepair, [OsStr::new("-n"), device.as_os_str()]);
    // "EXIT STATUS" in xfs_repair(8): 1 with -n means that it found damage, or that it could not begin, which
    // the caller has excluded as far as that can be.
    by_code(runner, invocation).await
}
