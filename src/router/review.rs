use std::time::SystemTime;

use crate::cluster::{TokenError, Tokens};
use crate::link::{ReviewError, Reviewed, Reviewer, Token};
use crate::types::chain;

/// Has the API server say whose token it is.
#[derive(Debug)]
pub struct TokenReviewer(Tokens);

impl TokenReviewer {
    /// By these reviews.
    pub const fn new(tokens: Tokens) -> Self {
        Self(tokens)
    }
}

#[async_trait::async_trait]
impl Reviewer for TokenReviewer {
    async fn review(&self, token: &Token) -> Result<Reviewed, ReviewError> {
        match self.0.review(token.reveal(), SystemTime::now()).await {
            Ok(token) => Ok(Reviewed { node: token.node, expires: token.expires }),
            Err(error @ TokenError::Unknown(_)) => Err(ReviewError::Unavailable(chain(&error))),
            Err(error) => Err(ReviewError::Refused(error.to_string())),
        }
    }
}
