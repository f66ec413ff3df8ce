use std::ffi::OsStr;
use std::path::Path;

use super::super::check::query;
use super::super::error::last_words;
use super::super::{Check, FsError};
use crate::exec::{Output, Program, Runner};

/// Runs `e2fsck -f -n`: everything is checked, nothing written, no question asked.
pub(super) async fn run(runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
    let arguments = [OsStr::new("-f"), OsStr::new("-n"), device.as_os_str()];
    let invocation = query(Program::E2fsck, arguments);
    let command = invocation.to_string();
    let output = runner.run(invocation).await?;
    decode(command, &output)
}

/// What its exit codes mean (e2fsck(8), "EXIT CODE"): bits that are added up.
fn decode(command: String, output: &Output) -> Result<Check, FsError> {
    /// Errors were left, as they always are with `-n`.
    const UNCORRECTED: i32 = 4;
    /// Something was not possible. Together with errors it is a consequence of them, as where mke2fs was
    /// cut off in the middle; alone it means that there is no superblock, or that nothing was read.
    const OPERATIONAL: i32 = 8;
    match output.code {
        Some(0) => Ok(Check::Clean),
        Some(code) if code & UNCORRECTED != 0 && code & !(UNCORRECTED | OPERATIONAL) == 0 => {
            Ok(Check::Damaged(last_words(output)))
        }
        _ => Err(FsError::unexpected_code(command, output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: Option<i32>) -> Result<Check, FsError> {
        let output = Output { code, stdout: b"Pass 1\n".to_vec(), stderr: "e2fsck 1.47\n".to_owned() };
        decode("e2fsck".to_owned(), &output)
    }

    #[test]
    fn only_zero_is_clean() {
        assert_eq!(decoded(Some(0)).unwrap(), Check::Clean);
        for damaged in [4, 12] {
            assert!(matches!(decoded(Some(damaged)).unwrap(), Check::Damaged(_)), "{damaged}");
        }
    }

    #[test]
    fn a_check_that_did_not_run_is_no_finding() {
        for code in [Some(1), Some(2), Some(8), Some(16), Some(32), Some(36), Some(128), Some(-1), None] {
            let error = decoded(code).unwrap_err();
            assert!(
                matches!(&error, FsError::Unexpected { found, .. } if found.contains("Pass 1")),
                "{code:?}"
            );
        }
    }
}
