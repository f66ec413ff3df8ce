use std::fmt;

/// A text that is not what it should be: what was expected, what was found, and why it does not do.
///
/// The found text is shortened and escaped, so that an error is safe to print whatever was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {found} {why}")]
pub struct ParseError {
    what: &'static str,
    found: Quoted,
    why: String,
}

impl ParseError {
    /// `what` names the kind of value, `why` finishes the sentence, as in "must not be empty".
    pub fn new(what: &'static str, found: &str, why: impl Into<String>) -> Self {
        Self { what, found: Quoted::from(found), why: why.into() }
    }
}

/// At most this many characters of a bad value are repeated in a message.
const SHOWN: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Quoted(String);

impl From<&str> for Quoted {
    fn from(text: &str) -> Self {
        let mut shown: String = text.chars().take(SHOWN).collect();
        if text.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Self(shown)
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
