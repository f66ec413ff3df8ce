//! Requests and answers that hold secrets. kube's own calls log the text of an answer that they cannot
//! parse; these never show a body to anybody.

use kube::client::Body;
use kube::core::Status;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClusterError;
use super::api::ask;

/// The longest answer, in bytes: etcd takes no object of more than 1.5 MiB.
const LONGEST: usize = 2 << 20;

/// Objects of one kind that hold secrets.
#[derive(Clone)]
pub(super) struct Sealed {
    client: Client,
    request: kube::core::Request,
}

impl Sealed {
    /// Objects of kind `K`, in that namespace where they are in one.
    pub(super) fn new<K: Resource<DynamicType = ()>>(client: Client, namespace: Option<&str>) -> Self {
        Self { client, request: kube::core::Request::new(K::url_path(&(), namespace)) }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        what: &'static str,
        name: &str,
    ) -> Result<T, ClusterError> {
        self.send(what, self.request.get(name, &Default::default())).await
    }

    pub(super) async fn create<T: Serialize + DeserializeOwned>(
        &self,
        what: &'static str,
        object: &T,
    ) -> Result<T, ClusterError> {
        self.send(what, self.request.create(&Default::default(), bytes(what, object)?)).await
    }

    /// Fails with a conflict where the object is not any more as it was read.
    pub(super) async fn replace<T: Serialize + DeserializeOwned>(
        &self,
        what: &'static str,
        name: &str,
        object: &T,
    ) -> Result<T, ClusterError> {
        self.send(what, self.request.replace(name, &Default::default(), bytes(what, object)?)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        what: &'static str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ClusterError> {
        let request = request.map_err(|error| ClusterError::of(what, kube::Error::BuildRequest(error)))?;
        let (status, body) = ask(what, async {
            let answer = self.client.send(request.map(Body::from)).await?;
            let status = answer.status();
            Ok((status, answer.into_body().collect_bytes().await?))
        })
        .await?;
        let strange = |why: &str| ClusterError::Strange { what, why: why.to_owned() };
        if body.len() > LONGEST {
            return Err(strange("the answer is too long"));
        }
        if status.is_success() {
            // The parser's error may quote what it cannot parse.
            return serde_json::from_slice(&body).map_err(|_| strange("the answer makes no sense"));
        }
        let words = serde_json::from_slice::<Status>(&body).map(|status| status.message).unwrap_or_default();
        Err(ClusterError::Refused { what, code: status.as_u16(), message: words })
    }
}

fn bytes<T: Serialize>(what: &'static str, object: &T) -> Result<Vec<u8>, ClusterError> {
    serde_json::to_vec(object)
        .map_err(|_| ClusterError::Strange { what, why: "it cannot be written down".to_owned() })
}
