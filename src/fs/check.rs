use std::ffi::OsStr;
use std::time::Duration;

use super::error::last_words;
use super::{Check, FsError};
use crate::exec::{Effect, Invocation, Output, Program, Runner};

/// How long a check may take: what it looks at was made by us lately and is nearly empty.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// A run of a program that checks.
pub(super) fn query<'a>(program: Program, arguments: impl IntoIterator<Item = &'a OsStr>) -> Invocation {
    Invocation { effect: Effect::Query(LIMIT), ..Invocation::query(program, arguments) }
}

/// Runs a check that ends with 0 where nothing is wrong, and with 1 where something is.
pub(super) async fn by_code(runner: &dyn Runner, invocation: Invocation) -> Result<Check, FsError> {
    let command = invocation.to_string();
    let output = runner.run(invocation).await?;
    decode(command, &output)
}

fn decode(command: String, output: &Output) -> Result<Check, FsError> {
    match output.code {
        Some(0) => Ok(Check::Clean),
        Some(1) => Ok(Check::Damaged(last_words(output))),
        _ => Err(FsError::unexpected_code(command, output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_is_clean_and_only_one_is_damaged() {
        let decoded = |code| {
            let output = Output { code, stdout: b"Phase 1\n".to_vec(), stderr: String::new() };
            decode("check".to_owned(), &output)
        };
        assert_eq!(decoded(Some(0)).unwrap(), Check::Clean);
        assert_eq!(decoded(Some(1)).unwrap(), Check::Damaged("Phase 1".to_owned()));
        for code in [Some(2), Some(4), Some(127), Some(-1), None] {
            assert!(matches!(decoded(code), Err(FsError::Unexpected { .. })), "{code:?}");
        }
    }
}
