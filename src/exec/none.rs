use super::{ExecError, Invocation, Output, Runner};

/// A machine on which no program can be run, for tests that must not need one.
pub(crate) struct NoPrograms;

#[async_trait::async_trait]
impl Runner for NoPrograms {
    async fn run(&self, invocation: Invocation) -> Result<Output, ExecError> {
        let source = std::io::Error::other("there are no programs here");
        Err(ExecError::Start { command: invocation.to_string(), source })
    }
}
