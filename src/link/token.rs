use std::path::PathBuf;
use std::{fmt, io};

use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

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

/// The file in which the kubelet keeps the token fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

/// A token has one or two thousand bytes; what has more than this is something else.
const LONGEST: u64 = 32 << 10;

/// A token that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    /// The file cannot be read.
    #[error("the token file {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// There is no token in it.
    #[error("the token file {} holds no token", .0.display())]
    NoToken(PathBuf),
}

impl TokenFile {
    /// The file at that path, which need not be there yet.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The token that is in it now.
    ///
    /// # Errors
    /// The file cannot be read, or holds none. No error shows what is in it.
    pub(super) async fn read(&self) -> Result<Token, TokenError> {
        let failed = |source| TokenError::Read { path: self.0.clone(), source };
        let mut text = Vec::new();
        let file = File::open(&self.0).await.map_err(failed)?;
        file.take(LONGEST + 1).read_to_end(&mut text).await.map_err(failed)?;
        let token = text.trim_ascii();
        let whole = u64::try_from(text.len()).is_ok_and(|length| length <= LONGEST);
        match std::str::from_utf8(token) {
            Ok(token) if whole && !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()) => {
                Ok(Token(token.to_owned()))
            }
            _ => Err(TokenError::NoToken(self.0.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_token_is_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::new(path.clone());
        assert!(matches!(file.read().await, Err(TokenError::Read { .. })));
        std::fs::write(&path, "eyJh.bGci-Oi_J9\n").unwrap();
        let token = file.read().await.unwrap();
        assert_eq!(token.reveal(), "eyJh.bGci-Oi_J9");
        assert!(!format!("{token:?} {file:?}").contains("eyJh"));
        for bad in [b"".as_slice(), b" \n", b"two words", b"\xff\xfe", &[b'x'; 40 << 10]] {
            std::fs::write(&path, bad).unwrap();
            let error = file.read().await.unwrap_err();
            assert!(matches!(error, TokenError::NoToken(_)) && !error.to_string().contains("words"));
        }
    }
}
