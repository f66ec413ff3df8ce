use std::time::SystemTime;

use super::Token;

/// Who knows whose token it is.
#[async_trait::async_trait]
pub trait Reviewer: Send + Sync {
    /// Says which node the token speaks for, and for how long. Whoever asks bounds the wait; the future
    /// may be dropped.
    ///
    /// # Errors
    /// The token speaks for no node, or nobody could say.
    async fn review(&self, token: &Token) -> Result<Reviewed, ReviewError>;
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// The name of the Node object.
    pub node: String,
    /// When the token runs out.
    pub expires: SystemTime,
}

/// Why a token is not accepted. The words go to the node, whose log they stand in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// It was judged, and is not good.
    #[error("{0}")]
    Refused(String),
    /// It could not be judged now.
    #[error("{0}")]
    Unavailable(String),
}
