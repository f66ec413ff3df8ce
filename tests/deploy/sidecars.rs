//! What the sidecars really ask of a real API server is what their roles grant: all of it, and nothing else.
//!
//! They run with the chart's flags, as the chart's account, over a driver that answers at once. The rest of a cluster is
//! played here.

mod audit;
mod driver;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIStorageCapacity, StorageClass};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quarry::csi::DRIVER_NAME;
use quarry::types::NODE_KEY;
use serde_json::{Value, json};

use super::apply::{Cluster, NAMESPACE};
use super::calls::NODE;
use super::server::{Server, alone};
use super::{access, container, manifests, object, objects, text, texts, tools};
use driver::Driver;

/// How long each step may take on a machine that has other things to do too.
const LIMIT: Duration = Duration::from_secs(120);
const POD: &str = "quarry-controller-1";
const SIDECARS: [(&str, &str); 2] =
    [("csi-provisioner", "quarry-provisioner"), ("csi-resizer", "quarry-resizer")];

#[test]
fn they_ask_for_all_that_their_roles_grant_and_for_nothing_else() {
    alone("deploy::sidecars::they_ask_for_all_that_their_roles_grant_and_for_nothing_else", async {
        let server = Server::start().await;
        let all = manifests();
        let cluster = Cluster::new(server.admin()).await;
        cluster.apply(&all).await;
        surroundings(&cluster).await;
        let driver = Driver::serve(&server.folder().join("csi.sock"));
        let sidecars = SIDECARS.map(|(name, _)| start(&server, &all, name));
        a_volume_s_life(server.admin(), &cluster, &driver).await;
        sidecars.into_iter().for_each(stop);
        let log = std::fs::read_to_string(server.audit_log()).unwrap();
        for (name, role) in SIDECARS {
            assert_eq!(audit::refused(&log, name), Vec::<String>::new(), "{name}");
            assert_eq!(audit::asked(&log, name), access::verbs(&all, role), "{name}");
        }
    });
}

/// What other parts of a cluster have made by then: the pod with its owners, and a node with the driver.
async fn surroundings(cluster: &Cluster) {
    let labels = json!({"app.kubernetes.io/name": "quarry", "app.kubernetes.io/component": "controller"});
    let template = json!({
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]},
    });
    let mut owner = cluster.get("apps/v1", "Deployment", NAMESPACE, "quarry-controller").await;
    for (version, kind, spec) in [
        ("apps/v1", "ReplicaSet", json!({"selector": {"matchLabels": labels}, "template": template})),
        ("v1", "Pod", template["spec"].clone()),
    ] {
        let owners = json!([{
            "apiVersion": "apps/v1", "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true,
        }]);
        let metadata = json!({"name": POD, "namespace": NAMESPACE, "ownerReferences": owners});
        cluster
            .apply(&[json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})])
            .await;
        owner = cluster.get(version, kind, NAMESPACE, POD).await;
    }
    let name = json!({"name": NODE, "labels": {NODE_KEY: NODE}});
    let drivers = json!([{"name": DRIVER_NAME, "nodeID": NODE, "topologyKeys": [NODE_KEY]}]);
    cluster
        .apply(&[
            json!({"apiVersion": "v1", "kind": "Node", "metadata": name}),
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                "metadata": {"name": NODE}, "spec": {"drivers": drivers},
            }),
        ])
        .await;
}

/// The sidecar as the chart starts it, but for the socket's place and the API server's.
fn start(server: &Server, all: &[Value], name: &str) -> Child {
    let sidecar = container(object(all, "Deployment", "quarry-controller"), name);
    let mut command = Command::new(tools::cluster(name));
    for flag in texts(&sidecar["args"]).into_iter().filter(|flag| !flag.starts_with("--csi-address=")) {
        command.arg(flag);
    }
    command.arg(format!("--csi-address={}", server.folder().join("csi.sock").display()));
    command.arg(format!("--kubeconfig={}", server.kubeconfig(NAMESPACE, "quarry-controller").display()));
    command.env_clear().envs([("NAMESPACE", NAMESPACE), ("POD_NAME", POD)]);
    // What a pod finds in a file of its own.
    command.env("POD_NAMESPACE", NAMESPACE);
    // API servers that cannot stream lists are asked for lists.
    command.env("KUBE_FEATURE_WatchListClient", "false");
    let log = std::fs::File::create(server.folder().join(format!("{name}.log"))).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// As the kubelet stops it: it gives its lease up.
fn stop(mut sidecar: Child) {
    kill(Pid::from_raw(i32::try_from(sidecar.id()).unwrap()), Signal::SIGTERM).unwrap();
    sidecar.wait().unwrap();
}

async fn a_volume_s_life(client: Client, cluster: &Cluster, driver: &Driver) {
    let capacities: Api<CSIStorageCapacity> = Api::namespaced(client.clone(), NAMESPACE);
    let published = async || {
        let all = capacities.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().next().map(|one| one.capacity.unwrap().0)
    };
    cluster.apply(&objects(&text("deploy/examples/storageclasses.yaml"))[..1]).await;
    until("capacity is published", async || published().await.is_some()).await;

    // A node without room is given back, twice; what is left of it is published at once.
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
    let first = published().await;
    driver.refuse(2);
    claim(cluster).await;
    for _ in 0..2 {
        let waits = async || {
            let annotations = claims.get("data").await.unwrap().metadata.annotations.unwrap();
            !annotations.contains_key("volume.kubernetes.io/selected-node")
        };
        until("the node is given back", waits).await;
        claim(cluster).await;
    }
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volume = until_some("a volume", async || {
        volumes.list(&ListParams::default()).await.unwrap().items.into_iter().next()
    });
    let name = volume.await.metadata.name.unwrap();
    until("the capacity is new", async || published().await != first).await;

    bind(&claims, &volumes, &name).await;
    for size in ["2Gi", "3Gi"] {
        let wish = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        claims.patch("data", &PatchParams::default(), &Patch::Merge(&wish)).await.unwrap();
        let grown = async || {
            let capacity = claims.get("data").await.unwrap().status.unwrap().capacity.unwrap();
            capacity["storage"].0 == size
        };
        until("it has grown", grown).await;
    }

    release(&volumes, &name).await;
    until("the volume is gone", async || volumes.get_opt(&name).await.unwrap().is_none()).await;
    let classes: Api<StorageClass> = Api::all(client);
    classes.delete("quarry", &DeleteParams::default()).await.unwrap();
    until("capacity is withdrawn", async || published().await.is_none()).await;
}

/// The claim, with the node that the scheduler chose.
async fn claim(cluster: &Cluster) {
    let annotations = json!({
        "volume.kubernetes.io/storage-provisioner": DRIVER_NAME,
        "volume.kubernetes.io/selected-node": NODE,
    });
    let mut claim = objects(&text("deploy/examples/claim.yaml")).remove(0);
    claim["metadata"] = json!({"name": "data", "namespace": "default", "annotations": annotations});
    claim["spec"]["resources"]["requests"]["storage"] = json!("1Gi");
    cluster.apply(&[claim]).await;
}

/// What the controller of volumes does with a claim and its new volume.
async fn bind(claims: &Api<PersistentVolumeClaim>, volumes: &Api<PersistentVolume>, name: &str) {
    let merge = PatchParams::default();
    let spec = json!({"spec": {"volumeName": name}});
    claims.patch("data", &merge, &Patch::Merge(&spec)).await.unwrap();
    let status = json!({"status": {
        "phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
    }});
    claims.patch_status("data", &merge, &Patch::Merge(&status)).await.unwrap();
    let bound = json!({"status": {"phase": "Bound"}});
    volumes.patch_status(name, &merge, &Patch::Merge(&bound)).await.unwrap();
}

/// What it does when the claim is gone: only the provisioner's own finalizer is left.
async fn release(volumes: &Api<PersistentVolume>, name: &str) {
    let merge = PatchParams::default();
    let finalizers = volumes.get(name).await.unwrap().metadata.finalizers.unwrap_or_default();
    let own: Vec<_> =
        finalizers.into_iter().filter(|name| name.starts_with("external-provisioner.")).collect();
    assert_eq!(own.len(), 1);
    let metadata = json!({"metadata": {"finalizers": own}});
    volumes.patch(name, &merge, &Patch::Merge(&metadata)).await.unwrap();
    let released = json!({"status": {"phase": "Released"}});
    volumes.patch_status(name, &merge, &Patch::Merge(&released)).await.unwrap();
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    until_some(what, async || holds().await.then_some(())).await;
}

async fn until_some<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
