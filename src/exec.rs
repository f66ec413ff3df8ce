//! The only place that starts programs.
//!
//! Programs are found once, by absolute path, when the driver starts ([`Programs::find`]); they run
//! with an environment of ours and the locale C. Whoever needs a program asks a [`Runner`], so that a
//! test can put another in its place. This module knows nothing of what the programs mean.

mod host;
#[cfg(test)]
mod none;
mod program;
mod tail;

pub use host::Host;
#[cfg(test)]
pub(crate) use none::NoPrograms;
pub use program::{MissingPrograms, Program, Programs};
pub use tail::Tail;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::time::Duration;

/// What a program does to the world, which decides what happens when it takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only looks: it is killed after this long, or when nobody waits for it any more.
    Query(Duration),
    /// It changes something: it is never killed, and waited for however long it takes.
    Change,
}

/// One run of a program.
#[derive(Debug)]
pub struct Invocation {
    /// Which program.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What it does to the world.
    pub effect: Effect,
    /// Its standard input; nothing where there is none. A lock that is to live as long as the program
    /// is handed down here: the descriptor is the one thing that a program inherits.
    pub input: Option<File>,
    /// Variables beside `PATH` and `LC_ALL`.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Invocation {
    /// A run of `program` that only looks, for at most ten seconds.
    pub fn query<A: Into<OsString>>(program: Program, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::new(program, Effect::Query(Duration::from_secs(10)), arguments)
    }

    /// A run of `program` that changes something.
    pub fn change<A: Into<OsString>>(program: Program, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::new(program, Effect::Change, arguments)
    }

    fn new<A: Into<OsString>>(
        program: Program,
        effect: Effect,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program, arguments, effect, input: None, environment: Vec::new() }
    }

    /// The same run with `input` as its standard input.
    #[must_use]
    pub fn with_input(mut self, input: File) -> Self {
        self.input = Some(input);
        self
    }

    /// The same run with one more variable in its environment.
    #[must_use]
    pub fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }
}

impl fmt::Display for Invocation {
    /// The command as a person would type it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.to_string_lossy()))
    }
}

/// What a program that ended left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// All that it wrote to standard output.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to standard error: messages for people.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with code zero.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Standard output as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A program that could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It did not start, or its streams failed.
    #[error("{command}: cannot be run")]
    Start {
        /// The command.
        command: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// It only looked, and took too long.
    #[error("{command}: no answer within {} s", .limit.as_secs())]
    Overdue {
        /// The command.
        command: String,
        /// How long it had.
        limit: Duration,
    },
    /// It wrote more than anything that it is used for would.
    #[error("{command}: its output is longer than {limit} bytes")]
    Flood {
        /// The command.
        command: String,
        /// How much it might write.
        limit: usize,
    },
    /// It ended, and not well.
    #[error("{command}: ended with {}: {stderr}", code_words(*.code))]
    Failed {
        /// The command.
        command: String,
        /// Its exit code; `None` where a signal ended it.
        code: Option<i32>,
        /// The end of its standard error.
        stderr: String,
    },
}

fn code_words(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"))
}

/// Runs programs.
#[async_trait::async_trait]
pub trait Runner: Send + Sync {
    /// Runs a program to its end, whatever its exit code.
    ///
    /// # Errors
    /// It did not start, took too long, or wrote too much; never its exit code.
    async fn run(&self, invocation: Invocation) -> Result<Output, ExecError>;
}

/// Runs a program that must succeed.
///
/// # Errors
/// Those of [`Runner::run`], and any exit code but zero.
pub async fn run_ok(runner: &dyn Runner, invocation: Invocation) -> Result<Output, ExecError> {
    let command = invocation.to_string();
    let output = runner.run(invocation).await?;
    if output.success() {
        return Ok(output);
    }
    Err(ExecError::Failed { command, code: output.code, stderr: output.stderr })
}
