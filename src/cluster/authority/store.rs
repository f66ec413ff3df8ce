use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;

use super::Names;
use super::state::{State, VERSION};
use crate::cluster::api::ask;
use crate::cluster::sealed::Sealed;
use crate::cluster::{Cluster, ClusterError};

/// The Secret's one entry.
const STATE: &str = "authorities.json";

/// The ConfigMap's one entry.
const BUNDLE: &str = "ca.crt";

/// Where authorities are kept.
pub(super) struct Store {
    secrets: Sealed,
    maps: Api<ConfigMap>,
    names: Names,
}

/// A state that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The API server did not do it.
    #[error(transparent)]
    Api(#[from] ClusterError),
    /// Another release wrote it, or something else did.
    #[error(
        "the Secret {0} holds something that this release cannot read: use the release that wrote it, or \
         empty the Secret, and a new authority is made"
    )]
    Unreadable(String),
}

/// The Secret, as it was read.
pub(super) struct Found {
    secret: Secret,
    pub(super) state: Option<State>,
}

impl Store {
    pub(super) fn new(cluster: &Cluster, names: Names) -> Self {
        let namespace = &cluster.namespace;
        Self {
            secrets: Sealed::new::<Secret>(cluster.client.clone(), Some(namespace)),
            maps: Api::namespaced(cluster.client.clone(), namespace),
            names,
        }
    }

    pub(super) async fn read(&self) -> Result<Found, StoreError> {
        let name = &self.names.secret;
        let secret: Secret = self.secrets.get("read the authority's Secret", name).await?;
        let text = secret.data.as_ref().and_then(|data| data.get(STATE));
        let state = match text.filter(|text| !text.0.is_empty()) {
            None => None,
            Some(text) => Some(parse(&text.0).ok_or_else(|| StoreError::Unreadable(name.clone()))?),
        };
        Ok(Found { secret, state })
    }

    /// Stores a state in place of what was found. `None` where somebody else was faster.
    pub(super) async fn write(&self, found: Found, state: State) -> Result<Option<Found>, StoreError> {
        const WHAT: &str = "write the authority's Secret";
        let mut secret = found.secret;
        let text = serde_json::to_vec(&state)
            .map_err(|_| ClusterError::Strange { what: WHAT, why: "it cannot be written down".to_owned() })?;
        secret.data.get_or_insert_default().insert(STATE.to_owned(), ByteString(text));
        match self.secrets.replace(WHAT, &self.names.secret, &secret).await {
            Ok(secret) => Ok(Some(Found { secret, state: Some(state) })),
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the nodes these certificates, and no others. `false` where somebody else was faster.
    pub(super) async fn publish(&self, bundle: &str) -> Result<bool, StoreError> {
        self.change(bundle, |text| text == bundle).await
    }

    /// Gives the nodes these certificates if they do not have `needed`, which is one of them.
    pub(super) async fn publish_unless(&self, bundle: &str, needed: &str) -> Result<bool, StoreError> {
        self.change(bundle, |text| text.contains(needed.trim())).await
    }

    async fn change(&self, bundle: &str, will_do: impl Fn(&str) -> bool) -> Result<bool, StoreError> {
        let name = &self.names.config_map;
        let mut map = ask("read the authority's ConfigMap", self.maps.get(name)).await?;
        if map.data.as_ref().and_then(|data| data.get(BUNDLE)).is_some_and(|text| will_do(text)) {
            return Ok(true);
        }
        let data: &mut BTreeMap<_, _> = map.data.get_or_insert_default();
        data.insert(BUNDLE.to_owned(), bundle.to_owned());
        match ask("write the authority's ConfigMap", self.maps.replace(name, &PostParams::default(), &map))
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The parser's errors may quote what they cannot parse, so nobody gets to see them.
fn parse(text: &[u8]) -> Option<State> {
    let state: State = serde_json::from_slice(text).ok()?;
    (state.version == VERSION).then_some(state)
}
