//! A real API server takes what the chart gives, in every shape that its values can give it.

use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::server::{Server, alone};
use super::{admission, calls, container, list, manifests, object, objects, pod, text, tools};

pub(super) const NAMESPACE: &str = "quarry-system";

#[test]
fn a_real_api_server_takes_it_all() {
    alone("deploy::apply::a_real_api_server_takes_it_all", async {
        let server = Server::start().await;
        let cluster = Cluster::new(server.admin()).await;
        cluster.apply(&manifests()).await;
        shapes(&cluster).await;
        examples(&cluster).await;
        restricted(&cluster).await;
        upgrade_keeps_what_the_driver_filled(&cluster).await;
        calls::all_are_allowed(&server).await;
        calls::nodes_may_do_nothing(&server).await;
        admission::holds(&server).await;
    });
}

/// Every value that adds or changes objects.
async fn shapes(cluster: &Cluster) {
    let digest = format!("image.digest=sha256:{}", "0".repeat(64));
    let shapes: [&[&str]; 3] = [
        &["--kube-version=1.37.0"],
        &["--kube-version=1.37.0", "--set=controller.replicas=2", "--set=node.maxUnavailable=10%"],
        &[
            "--set=image.pullSecrets[0].name=registry",
            "--set=node.nodeSelector.disks=yes",
            "--set=controller.nodeSelector.disks=no",
            "--set=node.podAnnotations.a=b",
            "--set=controller.podAnnotations.a=b",
            "--set=volumeGroups[0].name=a,volumeGroups[1].name=b*,volumeGroups[1].reserve=10GiB",
            &format!("--set={digest}"),
        ],
    ];
    for shape in shapes {
        cluster.try_out(&objects(&tools::rendered(shape))).await;
    }
}

async fn examples(cluster: &Cluster) {
    for file in ["storageclasses", "claim", "statefulset"] {
        cluster.try_out(&objects(&text(&format!("deploy/examples/{file}.yaml")))).await;
    }
}

/// The controller's pod may run where the strictest level of Pod Security is enforced.
async fn restricted(cluster: &Cluster) {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": labels},
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "quarry-controller", "namespace": "restricted"},
    });
    cluster.apply(&[namespace, account]).await;
    let all = manifests();
    let single = |workload: &Value, namespace| {
        let metadata = json!({"name": "one", "namespace": namespace});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod(workload)})
    };
    let controller = object(&all, "Deployment", "quarry-controller");
    let node = object(&all, "DaemonSet", "quarry-node");
    assert!(!list(&container(controller, "quarry")["args"]).is_empty());
    cluster.try_out(&[single(controller, "restricted"), single(node, NAMESPACE)]).await;
    let refused = cluster.send(&single(node, "restricted"), true).await.unwrap_err();
    assert!(refused.to_string().contains("violates PodSecurity"), "{refused}");
}

/// What the driver has put into its objects is there after the chart was applied once more.
async fn upgrade_keeps_what_the_driver_filled(cluster: &Cluster) {
    let all = manifests();
    for (kind, name) in [("Secret", "quarry-ca"), ("ConfigMap", "quarry-ca"), ("ConfigMap", "quarry-lost")] {
        let object = object(&all, kind, name);
        let api = cluster.api(object);
        let data = json!({"data": {"filled": "eA=="}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&data)).await.unwrap();
        cluster.apply(std::slice::from_ref(object)).await;
        let after = api.get(name).await.unwrap();
        assert_eq!(after.data["data"]["filled"], "eA==", "{kind} {name}");
    }
}

/// The API server as `kubectl apply --server-side` and Helm see it.
pub(super) struct Cluster {
    client: Client,
    kinds: Discovery,
}

impl Cluster {
    pub(super) async fn new(client: Client) -> Self {
        let kinds = Discovery::new(client.clone()).run().await.unwrap();
        Self { client, kinds }
    }

    /// Applies the objects.
    pub(super) async fn apply(&self, objects: &[Value]) {
        for object in objects {
            self.send(object, false).await.unwrap_or_else(|error| panic!("{error}: {object}"));
        }
    }

    /// The object of that name.
    pub(super) async fn get(&self, version: &str, kind: &str, namespace: &str, name: &str) -> Value {
        let metadata = json!({"name": name, "namespace": namespace});
        let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        serde_json::to_value(self.api(&object).get(name).await.unwrap()).unwrap()
    }

    /// Applies the objects, and changes nothing.
    async fn try_out(&self, objects: &[Value]) {
        for object in objects {
            self.send(object, true).await.unwrap_or_else(|error| panic!("{error}: {object}"));
        }
    }

    async fn send(&self, object: &Value, dry_run: bool) -> Result<DynamicObject, kube::Error> {
        let mut parameters = PatchParams::apply("helm");
        parameters.dry_run = dry_run;
        // A field that the API server does not know is a mistake, not a wish.
        parameters.field_validation = Some(ValidationDirective::Strict);
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object).patch(name, &parameters, &Patch::Apply(object)).await
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let kind = (&typed.types.clone().unwrap()).try_into().unwrap();
        let (resource, capabilities) = self.kinds.resolve_gvk(&kind).unwrap();
        let namespace = typed.namespace().unwrap_or_else(|| "default".to_owned());
        match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &namespace, &resource),
        }
    }
}
