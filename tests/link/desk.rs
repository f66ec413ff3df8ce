use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quarry::link::{ReviewError, Reviewed, Reviewer, Token};
use tokio::sync::watch;

/// A judge of tokens who goes by a list.
#[derive(Clone)]
pub(super) struct Desk {
    tokens: Arc<Mutex<HashMap<String, Result<Reviewed, ReviewError>>>>,
    asked: watch::Sender<usize>,
}

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

impl Desk {
    /// Knows `token-n1` as that of node n1, and likewise up to n3.
    pub(super) fn new() -> Self {
        let desk = Self { tokens: Arc::default(), asked: watch::Sender::new(0) };
        ["n1", "n2", "n3"].iter().for_each(|node| desk.knows(&format!("token-{node}"), node, LONG));
        desk
    }

    pub(super) fn knows(&self, token: &str, node: &str, lasts: Duration) {
        let reviewed = Reviewed { node: node.to_owned(), expires: SystemTime::now() + lasts };
        self.tokens.lock().unwrap().insert(token.to_owned(), Ok(reviewed));
    }

    pub(super) fn fails(&self, token: &str, why: ReviewError) {
        self.tokens.lock().unwrap().insert(token.to_owned(), Err(why));
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> watch::Receiver<usize> {
        self.asked.subscribe()
    }
}

#[async_trait::async_trait]
impl Reviewer for Desk {
    async fn review(&self, token: &Token) -> Result<Reviewed, ReviewError> {
        self.asked.send_modify(|asked| *asked += 1);
        let known = self.tokens.lock().unwrap().get(token.reveal()).cloned();
        known.unwrap_or_else(|| Err(ReviewError::Refused("the token is none of this cluster's".to_owned())))
    }
}
