//! What a person does with pods: wait for them, read their logs, run something in them, read the events.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{AttachParams, ListParams, LogParams};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::Space;
use crate::{Error, wait};

/// How long a request may take that only reads.
const LIMIT: Duration = Duration::from_secs(60);

/// What a program in a container did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Its exit status.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Space {
    /// Waits until a pod is ready, and returns it.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] with the pod's status and events.
    pub async fn pod_ready(&self, name: &str, limit: Duration) -> Result<Pod, Error> {
        let api = self.api();
        match wait::until(&api, name, &format!("the pod {name} to be ready"), limit, wait::is_pod_ready).await
        {
            Ok(Some(pod)) => Ok(pod),
            Ok(None) => Err(Error::other(format!("the pod {name} is gone"))),
            Err(Error::Late { what, limit, seen }) => {
                let events = self.events().await.unwrap_or_default().join("\n");
                Err(Error::Late { what, limit, seen: format!("{seen}\nevents:\n{events}") })
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until a pod is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] when it stays.
    pub async fn pod_gone(&self, name: &str, limit: Duration) -> Result<(), Error> {
        let api: Api<Pod> = self.api();
        let what = format!("the pod {name} to be gone");
        wait::until(&api, name, &what, limit, |pod| pod.is_none()).await.map(drop)
    }

    /// What a pod's only container has written.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the kubelet does not tell.
    pub async fn logs(&self, pod: &str) -> Result<String, Error> {
        let api: Api<Pod> = self.api();
        api.logs(pod, &LogParams::default()).await.map_err(Error::api(format!("read the logs of {pod}")))
    }

    /// Runs a program in a pod's only container.
    ///
    /// # Errors
    ///
    /// When it cannot be run, or does not end within a minute; not when it fails.
    pub async fn exec(&self, pod: &str, arguments: &[&str]) -> Result<Exec, Error> {
        let what = format!("{arguments:?} in {pod} to end");
        timeout(LIMIT, self.exec_to_end(pod, arguments)).await.map_err(|_| Error::Late {
            what,
            limit: LIMIT,
            seen: "it runs".to_owned(),
        })?
    }

    /// Like [`Space::exec`], and fails when the program does. Returns its standard output.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] when the program failed.
    pub async fn exec_ok(&self, pod: &str, arguments: &[&str]) -> Result<String, Error> {
        let Exec { status, stdout, stderr } = self.exec(pod, arguments).await?;
        if status == 0 {
            return Ok(stdout);
        }
        let program = format!("{} in {pod}", arguments.join(" "));
        Err(Error::Failed { program, end: format!("exit status {status}"), output: stdout + &stderr })
    }

    async fn exec_to_end(&self, pod: &str, arguments: &[&str]) -> Result<Exec, Error> {
        let api: Api<Pod> = self.api();
        let what = || Error::api(format!("run {arguments:?} in {pod}"));
        let mut process =
            api.exec(pod, arguments.iter().copied(), &AttachParams::default()).await.map_err(what())?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (mut from_stdout, mut from_stderr) = (process.stdout(), process.stderr());
        let read = async {
            tokio::try_join!(async { read_all(from_stdout.as_mut(), &mut stdout).await }, async {
                read_all(from_stderr.as_mut(), &mut stderr).await
            },)
        };
        read.await.map_err(Error::io(format!("read what {arguments:?} writes in {pod}")))?;
        let status = match process.take_status() {
            Some(status) => status.await,
            None => None,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Exec { status: exit_status(status.as_ref())?, stdout: text(&stdout), stderr: text(&stderr) })
    }

    /// All events in the namespace, oldest first, each in a line.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when they cannot be listed.
    pub async fn events(&self) -> Result<Vec<String>, Error> {
        let api: Api<Event> = self.api();
        let mut events = api.list(&ListParams::default()).await.map_err(Error::api("list the events"))?.items;
        events.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
        Ok(events.iter().map(describe).collect())
    }
}

async fn read_all(
    from: Option<&mut (impl AsyncReadExt + Unpin)>,
    into: &mut Vec<u8>,
) -> std::io::Result<usize> {
    match from {
        Some(from) => from.read_to_end(into).await,
        None => Ok(0),
    }
}

type Status = k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

/// The exit status is the last cause of a failure.
fn exit_status(status: Option<&Status>) -> Result<i32, Error> {
    let status = status.ok_or_else(|| Error::other("the kubelet did not say how the program ended"))?;
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_ref()?.parse().ok())
        .ok_or_else(|| Error::other(status.message.clone().unwrap_or_else(|| format!("{status:?}"))))
}

fn describe(event: &Event) -> String {
    let object = &event.involved_object;
    format!(
        "{} {}/{}: {}: {}",
        event.type_.as_deref().unwrap_or_default(),
        object.kind.as_deref().unwrap_or_default(),
        object.name.as_deref().unwrap_or_default(),
        event.reason.as_deref().unwrap_or_default(),
        event.message.as_deref().unwrap_or_default(),
    )
}
