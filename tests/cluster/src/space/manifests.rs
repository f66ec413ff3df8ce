//! Applying manifests.

use kube::api::{DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use kube::{Api, ResourceExt};

use super::Space;
use crate::Error;

/// The name under which fields are owned.
const MANAGER: &str = "cluster-lab";

impl Space {
    /// Makes the objects of a YAML text (several are set apart by `---`), or changes them to what it says. Objects that
    /// belong into a namespace and name none get into this one.
    ///
    /// # Errors
    ///
    /// When the text is no manifest or the API server refuses an object.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>, Error> {
        let mut applied = Vec::new();
        for object in parse(yaml)? {
            let api = self.api_of(&object).await?;
            let name = object.name_any();
            let params = PatchParams::apply(MANAGER).force();
            let result = api.patch(&name, &params, &Patch::Apply(&object)).await;
            applied.push(result.map_err(Error::api(format!("apply {name}")))?);
        }
        Ok(applied)
    }

    /// Removes the objects of a YAML text, the last first. Those that are not there are fine. It does not wait.
    ///
    /// # Errors
    ///
    /// As [`Space::apply`].
    pub async fn delete(&self, yaml: &str) -> Result<(), Error> {
        for object in parse(yaml)?.into_iter().rev() {
            let name = object.name_any();
            match self.api_of(&object).await?.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(Error::api(format!("remove {name}"))(error)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    async fn api_of(&self, object: &DynamicObject) -> Result<Api<DynamicObject>, Error> {
        let (resource, capabilities) = self.kind_of(object).await?;
        let own = object.namespace().unwrap_or_else(|| self.name.clone());
        Ok(match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &own, &resource),
        })
    }

    async fn kind_of(&self, object: &DynamicObject) -> Result<(ApiResource, ApiCapabilities), Error> {
        let types = object.types.as_ref().ok_or_else(|| Error::other("a manifest without kind"))?;
        let kind = GroupVersionKind::try_from(types).map_err(Error::other)?;
        pinned_kind(&self.client, &kind).await.map_err(Error::api(format!("look up {}", kind.kind)))
    }
}

fn parse(yaml: &str) -> Result<Vec<DynamicObject>, Error> {
    serde_saphyr::from_multiple(yaml).map_err(|error| Error::other(format!("no manifest: {error}")))
}
