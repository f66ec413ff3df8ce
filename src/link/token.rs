use std::fmt;

/// A service account token. It proves to whoever has it that he is the account, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token of that text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Its text, for sending it to whoever is to judge it. Never to be logged.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
