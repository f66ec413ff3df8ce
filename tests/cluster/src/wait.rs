//! Waiting for what the API server shows, by watching it, and never for ever.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use crate::Error;

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(200);
/// How long one plain request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// Waits until the object of this name (`None`: there is none) fulfils a condition, and returns it as it then is.
/// `what` completes the sentence "waited for …".
///
/// # Errors
///
/// [`Error::Late`] when it does not within `limit`, with the object's last state; [`Error::Api`] when it cannot be
/// watched.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    condition: impl Fn(Option<&K>) -> bool,
) -> Result<Option<K>, Error>
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + Serialize + 'static,
{
    match timeout(limit, await_condition(api.clone(), name, condition)).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(error)) => Err(Error::other(format!("cannot watch {name} for {what}: {error}"))),
        Err(_) => Err(Error::Late { what: what.to_owned(), limit, seen: state(api, name).await }),
    }
}

/// Waits until all objects together fulfil a condition, and returns them as they then are. `what` completes the
/// sentence "waited for …"; `show` puts the objects into words for the error.
///
/// # Errors
///
/// [`Error::Late`] when they do not within `limit`, with what was last seen of them.
pub async fn until_all<K>(
    api: &Api<K>,
    what: &str,
    limit: Duration,
    show: impl Fn(&[K]) -> String,
    mut condition: impl FnMut(&[K]) -> bool,
) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + DeserializeOwned + 'static,
{
    let mut seen = Vec::new();
    let look = async {
        let mut changes = pin!(watch(api.clone(), watcher::Config::default()).default_backoff());
        let mut all = BTreeMap::new();
        let mut complete = false;
        while let Some(change) = changes.next().await {
            match change {
                Ok(Event::Init) => {
                    complete = false;
                    all.clear();
                }
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    all.insert((object.namespace(), object.name_any()), object);
                }
                Ok(Event::Delete(object)) => {
                    all.remove(&(object.namespace(), object.name_any()));
                }
                Ok(Event::InitDone) => complete = true,
                // It asks again; if that never helps, this is late.
                Err(_) => {}
            }
            seen = all.values().cloned().collect();
            if complete && condition(&seen) {
                return;
            }
        }
    };
    match timeout(limit, look).await {
        Ok(()) => Ok(seen),
        Err(_) => Err(Error::Late { what: what.to_owned(), limit, seen: show(&seen) }),
    }
}

/// Tries something again and again until it succeeds; for what nobody tells of. `what` completes the sentence
/// "waited for …".
///
/// # Errors
///
/// [`Error::Late`] when it does not succeed within `limit`, with the last failure.
pub async fn try_until<T, F>(what: &str, limit: Duration, attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + limit;
    loop {
        match attempt().await {
            Ok(result) => return Ok(result),
            Err(error) if Instant::now() > deadline => {
                return Err(Error::Late { what: what.to_owned(), limit, seen: error.chain() });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// What is to be seen of an object: its status, or all of it if it has none.
async fn state<K>(api: &Api<K>, name: &str) -> String
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object = match timeout(REQUEST_LIMIT, api.get_opt(name)).await {
        Ok(Ok(Some(object))) => object,
        Ok(Ok(None)) => return format!("there is no {name}"),
        Ok(Err(error)) => return format!("no answer: {error}"),
        Err(_) => return "no answer".to_owned(),
    };
    let value = serde_json::to_value(&object).unwrap_or_default();
    value.get("status").unwrap_or(&value).to_string()
}

/// Whether a pod is ready.
pub fn is_pod_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// Whether a node is ready.
pub fn is_node_ready(node: Option<&Node>) -> bool {
    let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// Whether what is known of a node is from this start of its kernel.
pub(crate) fn is_boot(node: Option<&Node>, boot: &str) -> bool {
    let info = node.and_then(|node| node.status.as_ref()?.node_info.as_ref());
    info.is_some_and(|info| info.boot_id == boot)
}

/// Fails unless the API server says that it is ready.
pub(crate) async fn is_ready(client: &Client) -> Result<(), Error> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(Error::other)?;
    match timeout(REQUEST_LIMIT, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Error::api("ask whether the API server is ready")(error)),
        Err(_) => Err(Error::other("the API server does not answer")),
    }
}
