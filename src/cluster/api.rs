use std::fmt;
use std::future::Future;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::InferConfigError;
use kube::{Client, Config};

use super::ClusterError;

/// How long the API server may take to answer one question.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How many objects come in one answer of a listing.
pub(super) const PAGE: u32 = 500;

/// How long a connection to the API server may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How Quarry calls itself: whoever reads the API server's audit log sees which requests are its own, and not those of
/// the sidecars, which have the same account.
const AGENT: &str = concat!("quarry/", env!("CARGO_PKG_VERSION"));

/// An API server that cannot be asked anything.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where it is.
    #[error(
        "nothing says where the API server is: neither a service account nor a kubeconfig is here (in a pod it needs the former; elsewhere KUBECONFIG names the latter)"
    )]
    Nowhere(#[source] Box<InferConfigError>),
    /// What says where it is makes no sense.
    #[error("the settings for the API server make no sense")]
    Settings(#[source] Box<kube::Error>),
}

/// The cluster that the driver is a part of, and the namespace that it lives in.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    pub(super) namespace: String,
}

impl Cluster {
    /// The cluster behind `client`.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// The cluster that this process runs in: by its service account, or by the file that `KUBECONFIG` names.
    /// Nothing is asked of the API server yet.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(namespace: impl Into<String>) -> Result<Self, ConnectError> {
        let mut config = Config::infer().await.map_err(|error| ConnectError::Nowhere(Box::new(error)))?;
        config.connect_timeout = Some(CONNECT);
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
        let client = Client::try_from(config).map_err(|error| ConnectError::Settings(Box::new(error)))?;
        Ok(Self::new(client, namespace))
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Waits for an answer, not for ever. `what` finishes the sentence "cannot ...".
pub(super) async fn ask<T>(
    what: &'static str,
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(|error| ClusterError::of(what, error)),
        Err(_) => Err(ClusterError::Silent { what, after: PATIENCE }),
    }
}
