use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// The name that a caller gives a volume in CreateVolume; its key for repeats.
///
/// CSI lets a name have 128 bytes of Unicode without control characters (spec, "CreateVolume").
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CsiName(String);

/// CSI's limit on strings that name things, in bytes (spec, "Size Limits").
const LONGEST: usize = 128;

impl CsiName {
    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CsiName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| ParseError::new("name", text, why);
        match text {
            "" => Err(bad("must not be empty")),
            _ if text.len() > LONGEST => Err(bad("must not be longer than 128 bytes")),
            _ if text.chars().any(char::is_control) => Err(bad("must not hold control characters")),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for CsiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
