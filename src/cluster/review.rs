use std::fmt;
use std::time::SystemTime;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};

use super::sealed::Sealed;
use super::{Cluster, ClusterError, token};

/// Whom tokens of a node must be meant for: a token that was made for the API server, or for anybody
/// else, opens nothing here.
pub const AUDIENCE: &str = "lvm.csi.quarry";

/// The part of a token's identity that names the node which the token's pod runs on (Kubernetes 1.32 and
/// later give it).
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// A node's token, found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeToken {
    /// The node that the bearer runs on, as Kubernetes calls it.
    pub node: String,
    /// Until when.
    pub expires: SystemTime,
}

/// A token that proves nothing. No message holds any part of a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The API server does not know it.
    #[error("the token is not valid: {0}")]
    Invalid(String),
    /// It is somebody else's business.
    #[error("the token is not meant for {AUDIENCE}: the projected token's audience must be {AUDIENCE}")]
    Audience,
    /// It is another account's.
    #[error("the token belongs to {found}, and nodes use {wanted}")]
    Account {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// It is not bound to a pod that runs on a node.
    #[error(
        "the token names no node: it must be projected into a pod, by Kubernetes 1.32 or later \
         (the user's extra {NODE_NAME} is missing)"
    )]
    NoNode,
    /// It does not say how long it is good, or is not good any more.
    #[error("the token {0}")]
    Ended(&'static str),
    /// Nobody can tell.
    #[error(transparent)]
    Unknown(#[from] ClusterError),
}

/// The reviews of nodes' tokens.
#[derive(Clone)]
pub struct Tokens {
    reviews: Sealed,
    /// The one account whose tokens count, by its full name.
    account: String,
}

impl Tokens {
    /// Reviews tokens of the service account of that name, in the driver's namespace.
    pub fn new(cluster: &Cluster, account: &str) -> Self {
        Self {
            reviews: Sealed::new::<TokenReview>(cluster.client.clone(), None),
            account: format!("system:serviceaccount:{}:{account}", cluster.namespace),
        }
    }

    /// Whose token this is, and how long it is good. `now` is the time to judge by.
    ///
    /// # Errors
    /// See [`TokenError`]; of them [`TokenError::Unknown`] may be another at the next try.
    pub async fn review(&self, token: &str, now: SystemTime) -> Result<NodeToken, TokenError> {
        let spec =
            TokenReviewSpec { audiences: Some(vec![AUDIENCE.to_owned()]), token: Some(token.to_owned()) };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = self.reviews.create("have a token reviewed", &review).await?;
        let status = answer.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            let reason = status.error.filter(|reason| !reason.is_empty());
            return Err(TokenError::Invalid(
                reason.unwrap_or_else(|| "the API server does not know it".to_owned()),
            ));
        }
        // A server that knows nothing of audiences would find any token good, and leave this empty.
        if !status.audiences.is_some_and(|audiences| audiences.iter().any(|one| one == AUDIENCE)) {
            return Err(TokenError::Audience);
        }
        let node = self.node(status.user.unwrap_or_default())?;
        match token::expiry(token) {
            None => Err(TokenError::Ended("does not say how long it is good")),
            Some(expires) if expires <= now => Err(TokenError::Ended("has expired")),
            Some(expires) => Ok(NodeToken { node, expires }),
        }
    }

    fn node(&self, user: UserInfo) -> Result<String, TokenError> {
        let found = user.username.unwrap_or_default();
        if found != self.account {
            return Err(TokenError::Account { found, wanted: self.account.clone() });
        }
        let names = user.extra.and_then(|mut extra| extra.remove(NODE_NAME)).unwrap_or_default();
        match <[String; 1]>::try_from(names) {
            Ok([node]) if !node.is_empty() => Ok(node),
            _ => Err(TokenError::NoNode),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("account", &self.account).finish_non_exhaustive()
    }
}
