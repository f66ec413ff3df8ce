//! Quarry in the cluster: installed from its image and its chart, with the very commands of its documentation.

use std::path::Path;
use std::time::Duration;

use futures_util::future::try_join_all;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::{CSINode, CSIStorageCapacity};
use kube::Api;
use kube::api::{ListParams, LogParams, ResourceExt};

use crate::paths::{self, Paths};
use crate::program::{command, succeed};
use crate::{Cluster, Error, wait};

/// The driver's name in Kubernetes.
pub const NAME: &str = "lvm.csi.quarry";
/// The namespace that the documentation puts it in.
pub const NAMESPACE: &str = "quarry-system";

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What a person reads who installs the driver, relative to the repository.
const MANUAL: &str = "docs/kubernetes.md";
/// The line above the commands that install the driver.
const STEP: &str = "**3. Install the chart.**";
/// Where the manual expects the image; the nodes have it under its own name instead, as the manual's second way says.
const MANUALS_IMAGE: &str = " --set image.repository=registry.example/quarry";

/// Helm and kubectl wait for the API server only.
const COMMAND_LIMIT: Duration = Duration::from_secs(180);
/// How much of a log is worth showing in an error.
const LAST_LINES: i64 = 15;
const READY_LIMIT: Duration = Duration::from_secs(300);

impl Cluster {
    /// Installs the driver from an OCI archive, and returns when it is ready on all nodes.
    ///
    /// # Errors
    ///
    /// When the archive is none, a command of the manual fails, or the driver is not ready in time.
    pub(crate) async fn install(&self, paths: &Paths, image: &Path) -> Result<(), Error> {
        try_join_all(self.nodes().iter().map(|node| node.import(image))).await?;
        self.install_chart(paths).await
    }

    /// Installs the driver, whose image the nodes have, and returns when it is ready on all nodes.
    ///
    /// # Errors
    ///
    /// When a command of the manual fails, or the driver is not ready in time.
    pub(crate) async fn install_chart(&self, paths: &Paths) -> Result<(), Error> {
        self.shell(paths, &commands()?).await?;
        self.driver_ready().await
    }

    /// Sets values of the installed chart, as a user does, and returns when the driver is ready with them.
    ///
    /// # Errors
    ///
    /// When Helm refuses them, or the driver is not ready in time.
    pub(crate) async fn set_values(&self, values: &str) -> Result<(), Error> {
        let command = format!(
            "helm upgrade quarry deploy/chart -n {NAMESPACE} --reset-then-reuse-values --set '{values}'"
        );
        self.shell(&Paths::find()?, &command).await?;
        self.driver_ready().await
    }

    /// Runs lines of shell as a person does who sits in the repository and has the cluster's kubeconfig.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with all that they wrote, when one of them fails.
    pub async fn shell(&self, paths: &Paths, lines: &str) -> Result<String, Error> {
        let search =
            format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", paths.bin().display());
        let mut shell = command("sh");
        shell
            .args(["-euc", lines])
            .current_dir(REPOSITORY)
            .env("PATH", search)
            .env("KUBECONFIG", paths.kubeconfig())
            // Nothing of Helm's outlives the cluster.
            .env("HELM_CACHE_HOME", paths.run().join("helm"))
            .env("HELM_CONFIG_HOME", paths.run().join("helm"))
            .env("HELM_DATA_HOME", paths.run().join("helm"));
        succeed(&mut shell, COMMAND_LIMIT).await
    }

    /// Waits until the driver's pods are those that are wanted, are ready, and are registered on all nodes, and each
    /// node's room is published.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] with what is missing, and the pods' own words.
    pub async fn driver_ready(&self) -> Result<(), Error> {
        match self.parts_ready().await {
            Err(Error::Late { what, limit, seen }) => {
                let pods = self.driver_words(Some(LAST_LINES)).await.unwrap_or_else(|error| error.chain());
                Err(Error::Late { what, limit, seen: format!("{seen}\n{pods}") })
            }
            result => result,
        }
    }

    async fn parts_ready(&self) -> Result<(), Error> {
        let client = self.client();
        let controllers: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let what = "the controller to be ready";
        wait::until(&controllers, "quarry-controller", what, READY_LIMIT, is_deployment_ready).await?;
        let drivers: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
        let what = "the driver to be ready on all nodes";
        wait::until(&drivers, "quarry-node", what, READY_LIMIT, is_daemon_set_ready).await?;
        let nodes: Api<CSINode> = Api::all(client.clone());
        for node in self.nodes() {
            let what = format!("the driver to be registered on {}", node.name());
            wait::until(&nodes, node.name(), &what, READY_LIMIT, has_driver).await?;
        }
        let capacities: Api<CSIStorageCapacity> = Api::namespaced(client, NAMESPACE);
        let wanted = self.nodes().len();
        let (what, show) =
            ("the room of all nodes to be published", |all: &[CSIStorageCapacity]| format!("{all:?}"));
        wait::until_all(&capacities, what, READY_LIMIT, show, |all| {
            all.iter().filter(|one| one.storage_class_name == CLASS && one.capacity.is_some()).count()
                == wanted
        })
        .await
        .map(drop)
    }

    /// The pods of a part of the driver, `controller` or `node`, that are not about to go.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when they cannot be listed.
    pub(crate) async fn driver_pods(&self, part: &str) -> Result<Vec<Pod>, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
        let params = ListParams::default().labels(&format!("app.kubernetes.io/component={part}"));
        let all = pods.list(&params).await.map_err(Error::api(format!("list the driver's pods ({part})")))?;
        Ok(all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// The controller's pod; one of them where it has several.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(crate) async fn controller(&self) -> Result<Pod, Error> {
        let mut all = self.driver_pods("controller").await?;
        all.pop().ok_or_else(|| Error::other("there is no controller"))
    }

    /// What the driver's pods are doing, and what they have written: all of it, or so many last lines of each.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when they cannot be listed.
    pub(crate) async fn driver_words(&self, lines: Option<i64>) -> Result<String, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
        let all = pods.list(&ListParams::default()).await.map_err(Error::api("list the driver's pods"))?;
        let mut words = String::new();
        for pod in all {
            let status = serde_json::to_string(&pod.status).unwrap_or_default();
            words.push_str(&format!("{}: {status}\n", pod.name_any()));
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                let name = pod.name_any();
                // What a container was that has been started again may say why.
                if let Ok(text) = log(&pods, &name, &container.name, true, lines).await {
                    words.push_str(&format!(
                        "--- {name} {}, before its last start:\n{text}\n",
                        container.name
                    ));
                }
                let text = log(&pods, &name, &container.name, false, lines).await;
                let text = text.unwrap_or_else(|error| error.to_string());
                words.push_str(&format!("--- {name} {}:\n{text}\n", container.name));
            }
        }
        Ok(words)
    }
}

/// What a container has written, or the one that was there before its last start.
async fn log(
    pods: &Api<Pod>,
    pod: &str,
    container: &str,
    previous: bool,
    tail_lines: Option<i64>,
) -> kube::Result<String> {
    let container = Some(container.to_owned());
    pods.logs(pod, &LogParams { container, previous, tail_lines, ..LogParams::default() }).await
}

/// The StorageClass of the driver's examples that suits most uses.
pub const CLASS: &str = "quarry";

/// The commands of a page of the documentation, by its path in the repository, that stand next below a line that
/// begins so.
///
/// # Errors
///
/// When there is no such page, or no such line in it.
pub(crate) fn documented(page: &str, beginning: &str) -> Result<String, Error> {
    let text = paths::read(&Path::new(REPOSITORY).join(page))?;
    let block = block_after(&text, beginning).map(str::to_owned);
    block.ok_or_else(|| Error::other(format!("{page} has no commands after {beginning:?}")))
}

/// The commands of the manual that install the chart.
fn commands() -> Result<String, Error> {
    let block = documented(MANUAL, STEP)?;
    match block.replace(MANUALS_IMAGE, "") {
        commands if commands != block => Ok(commands),
        _ => Err(Error::other(format!("the commands of {MANUAL} have no{MANUALS_IMAGE}"))),
    }
}

/// The first block of code after a line that begins so.
fn block_after<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("\n{beginning}"))?;
    let (_, rest) = rest.split_once("\n```")?;
    let (_, rest) = rest.split_once('\n')?;
    Some(rest.split_once("```")?.0)
}

fn is_deployment_ready(deployment: Option<&Deployment>) -> bool {
    let Some((deployment, status)) = deployment.and_then(|it| Some((it, it.status.as_ref()?))) else {
        return false;
    };
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    status.observed_generation == deployment.metadata.generation
        && [status.updated_replicas, status.available_replicas, status.replicas]
            .iter()
            .all(|count| *count == wanted)
}

fn is_daemon_set_ready(set: Option<&DaemonSet>) -> bool {
    let Some((set, status)) = set.and_then(|it| Some((it, it.status.as_ref()?))) else { return false };
    let wanted = status.desired_number_scheduled;
    status.observed_generation == set.metadata.generation
        && wanted > 0
        && status.updated_number_scheduled == Some(wanted)
        && status.number_available == Some(wanted)
}

fn has_driver(node: Option<&CSINode>) -> bool {
    node.is_some_and(|node| node.spec.drivers.iter().any(|driver| driver.name == NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_says_how_to_install_the_driver() {
        let commands = commands().unwrap();
        assert!(commands.contains("helm install quarry deploy/chart"), "{commands}");
    }

    #[test]
    fn the_commands_are_those_of_the_block_below_the_step() {
        let text =
            "\n**2. No**\n```\nno\n```\n\n**3. Yes.** Words\nand more.\n\n```sh\na\nb c\n```\n```\nno\n```\n";
        assert_eq!(block_after(text, "**3. Yes.**"), Some("a\nb c\n"));
        assert_eq!(block_after(text, "**4. Yes.**"), None);
    }
}
