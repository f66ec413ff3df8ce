//! How a node is asked to do something: one TCP connection per request, JSON each way.
//!
//! The agent runs beside the kubelet, as a person with a shell on the node would, and listens inside the cluster's
//! network only.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Error;

pub(crate) const PORT: u16 = 10_900;

/// A node that is up takes connections at once; one without power says nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long the agent may take beyond what it was asked to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that a node runs for as long as it is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Service {
    /// Runs containers.
    Containerd,
    /// Runs pods.
    Kubelet,
    /// Makes the addresses of Kubernetes' services work.
    KubeProxy,
}

impl Service {
    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Service::Containerd => "containerd",
            Service::Kubelet => "kubelet",
            Service::KubeProxy => "kube-proxy",
        }
    }
}

/// What is to happen to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Action {
    /// Run it, and start it again when it ends unasked.
    Start,
    /// Ask it to end, and insist after a while.
    Stop,
    /// End it at once.
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Run a program to its end.
    Run { arguments: Vec<String>, input: String, limit: Duration },
    /// Change what a service does.
    Service { service: Service, action: Action },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Ran(Output),
    Done,
    Failed(String),
}

/// What a program on a node did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit status, as a shell puts it: 128 and a signal's number when a signal ended it.
    pub status: i32,
    /// What it wrote to standard output. Bytes that are no text are replaced.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// Asks the agent at this address. `limit` is what the request itself may take.
pub(crate) async fn ask(address: Ipv4Addr, request: &Request, limit: Duration) -> Result<Answer, Error> {
    let limit = limit + PATIENCE;
    timeout(limit, exchange(address, request)).await.map_err(|_| Error::Late {
        what: format!("the agent at {address} to answer"),
        limit,
        seen: "no answer".to_owned(),
    })?
}

async fn exchange(address: Ipv4Addr, request: &Request) -> Result<Answer, Error> {
    let what = || format!("ask the agent at {address}");
    let connecting = timeout(CONNECT_LIMIT, TcpStream::connect((address, PORT))).await;
    let mut connection = connecting.map_err(Error::io(what()))?.map_err(Error::io(what()))?;
    send(&mut connection, request).await.map_err(Error::io(what()))?;
    receive(&mut connection).await.map_err(Error::io(what()))
}

/// Writes one message and closes this direction.
pub(crate) async fn send<T: Serialize>(connection: &mut TcpStream, message: &T) -> std::io::Result<()> {
    connection.write_all(&serde_json::to_vec(message)?).await?;
    connection.shutdown().await
}

/// Reads the other side's message, which ends where it closed its direction.
pub(crate) async fn receive<T: for<'a> Deserialize<'a>>(connection: &mut TcpStream) -> std::io::Result<T> {
    let mut text = Vec::new();
    connection.read_to_end(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}
