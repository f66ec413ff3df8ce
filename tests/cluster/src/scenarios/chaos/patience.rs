//! How long is waited while faults strike.

use std::fmt::Debug;

use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::PATIENCE;
use crate::{Error, wait};

/// Waits for [`PATIENCE`] after the last fault, since each may undo what was as good as done. Nothing waits for ever:
/// there is an end to the faults.
#[derive(Clone)]
pub(super) struct Patience {
    /// Whether the faults are over.
    calm: watch::Receiver<bool>,
}

impl Patience {
    pub(super) fn new(calm: watch::Receiver<bool>) -> Patience {
        Patience { calm }
    }

    /// Like [`wait::try_until`].
    pub(super) async fn try_until<T, F>(&self, what: &str, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.of(|| wait::try_until(what, PATIENCE, &attempt)).await
    }

    /// Like [`wait::until`], and watches again when that fails: the API server is short of time too.
    pub(super) async fn until<K>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Fn(Option<&K>) -> bool,
    ) -> Result<Option<K>, Error>
    where
        K: Resource + Clone + Debug + Send + DeserializeOwned + Serialize + 'static,
    {
        let look = || async {
            match wait::until(api, name, what, PATIENCE, &condition).await {
                // To wait for longer is of no use.
                Err(late @ Error::Late { .. }) => Ok(Err(late)),
                Err(error) => Err(error),
                Ok(object) => Ok(Ok(object)),
            }
        };
        self.of(|| async { wait::try_until(what, PATIENCE, &look).await? }).await
    }

    /// The outcome of `wait`, or of one that began when the faults were over.
    async fn of<T, F>(&self, wait: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        loop {
            let calm = *self.calm.borrow();
            match wait().await {
                Err(Error::Late { .. }) if !calm => {}
                ended => return ended,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn what_is_late_while_faults_strike_is_waited_for_until_they_have_been_over_for_long() {
        let (over, calm) = watch::channel(false);
        let waits = Cell::new(0);
        let late = async || {
            waits.set(waits.get() + 1);
            if waits.get() == 2 {
                over.send_replace(true);
            }
            Err::<(), _>(Error::Late { what: String::new(), limit: PATIENCE, seen: String::new() })
        };
        let ended = Patience::new(calm).of(late).await;
        assert!(matches!(ended, Err(Error::Late { .. })) && waits.get() == 3, "{}", waits.get());
    }

    #[tokio::test]
    async fn what_is_wrong_is_told_at_once() {
        let (_over, calm) = watch::channel(false);
        let wrong = async || Err::<(), _>(Error::other("lost".to_owned()));
        assert!(matches!(Patience::new(calm).of(wrong).await, Err(Error::Other(_))));
    }
}
