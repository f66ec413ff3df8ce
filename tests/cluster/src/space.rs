//! A namespace of Kubernetes, and what scenarios do in it.

mod manifests;
mod pods;

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::{Error, wait};

pub use pods::Exec;

/// How long everything in a namespace may take to go away.
const REMOVAL_LIMIT: Duration = Duration::from_secs(180);

/// A namespace of a scenario's own.
#[derive(Clone)]
pub struct Space {
    client: Client,
    name: String,
}

impl Space {
    /// Makes the namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when it cannot be made, or is there already.
    pub async fn create(client: Client, name: &str) -> Result<Space, Error> {
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let api: Api<Namespace> = Api::all(client.clone());
        api.create(&PostParams::default(), &namespace)
            .await
            .map_err(Error::api(format!("make the namespace {name}")))?;
        Ok(Space { client, name: name.to_owned() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client that it is used with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The objects of one kind in it.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Removes the namespace with all that is in it, and returns when all is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] when something in it does not go away.
    pub async fn remove(&self) -> Result<(), Error> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.delete(&self.name, &DeleteParams::default())
            .await
            .map_err(Error::api(format!("remove the namespace {}", self.name)))?;
        let what = format!("the namespace {} to be gone", self.name);
        wait::until(&api, &self.name, &what, REMOVAL_LIMIT, |namespace| namespace.is_none()).await.map(drop)
    }
}
