use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::types::ParseError;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line of text each, for people.
    #[default]
    Text,
    /// One JSON object each, for collectors.
    Json,
}

impl FromStr for LogFormat {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(ParseError::new("log format", text, "must be text or json")),
        }
    }
}

/// What is logged: a level, or levels for parts of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

impl LogFilter {
    /// The filter as tracing has it.
    pub fn to_filter(&self) -> EnvFilter {
        EnvFilter::new(&self.0)
    }
}

impl FromStr for LogFilter {
    type Err = ParseError;

    /// Directives with commas between them, each a level or `PART=LEVEL`. Stricter than tracing, which
    /// takes a mistyped level for the name of a part, and then logs nothing else.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
        let directive = |word: &str| is_level(word.rsplit('=').next().unwrap_or(word));
        let good = text.split(',').all(directive) && EnvFilter::try_new(text).is_ok();
        good.then(|| Self(text.to_owned())).ok_or_else(|| {
            let why = format!("must be one of {}, or PART=LEVEL", LEVELS.join(", "));
            ParseError::new("log level", text, why)
        })
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_an_error() {
        for good in ["info", "WARN", "info,quarry::lvm=debug", "off"] {
            assert!(good.parse::<LogFilter>().is_ok(), "{good}");
        }
        for bad in ["", "inof", "info,", "quarry=verbose", "quarry", "info debug"] {
            assert!(bad.parse::<LogFilter>().is_err(), "{bad}");
        }
    }
}
