//! What the accounts may do at the API server is what the programs do there, no more and no less.
//!
//! The table was made by reading: ours in `src/cluster`, the sidecars' in the versions that `tests/cluster/go/go.mod`
//! pins, for a driver with our capabilities (no snapshots, no attaching, no modifying, no secrets).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{list, manifests, object, texts};

/// Where a permission holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In the driver's namespace.
    Namespace,
}
use Scope::{Cluster, Namespace};

/// A kind of call, and where in the source it is made.
struct Call {
    scope: Scope,
    group: &'static str,
    resource: &'static str,
    /// The only object that it is about, if there is just one.
    name: &'static str,
    verbs: &'static str,
    place: &'static str,
}

const fn call(
    scope: Scope,
    group: &'static str,
    resource: &'static str,
    verbs: &'static str,
    place: &'static str,
) -> Call {
    Call { scope, group, resource, name: "", verbs, place }
}

const fn one(call: Call, name: &'static str) -> Call {
    Call { name, ..call }
}

/// The driver as a controller; places are files of `src/cluster`.
const CONTROLLER: &[Call] = &[
    call(Cluster, "", "nodes", "list watch", "nodes.rs: follow"),
    call(Cluster, "", "nodes", "patch", "labels.rs: patch"),
    call(Cluster, "", "persistentvolumes", "list", "claims.rs: volume_handles"),
    call(Cluster, "", "persistentvolumes", "get", "claims.rs: volume_uid"),
    call(Cluster, "", "persistentvolumeclaims", "get", "claims.rs: claim"),
    one(call(Cluster, "", "namespaces", "get", "claims.rs: identity"), "kube-system"),
    call(Cluster, "events.k8s.io", "events", "create", "events.rs: write"),
    call(Cluster, "authentication.k8s.io", "tokenreviews", "create", "review.rs: review"),
    one(call(Namespace, "", "secrets", "get update", "authority/store.rs: read, write"), "quarry-ca"),
    one(call(Namespace, "", "configmaps", "get update", "authority/store.rs: change"), "quarry-ca"),
    call(Namespace, "coordination.k8s.io", "leases", "get list create update delete", "lease.rs"),
];

/// csi-provisioner 6.4; *lib* is sig-storage-lib-external-provisioner 13.1.
const PROVISIONER: &[Call] = &[
    call(Cluster, "", "persistentvolumes", "list watch", "lib controller.go: the informer of volumes"),
    call(Cluster, "", "persistentvolumes", "create", "lib volume_store.go: StoreVolume"),
    call(Cluster, "", "persistentvolumes", "patch", "lib controller.go: the finalizer"),
    call(Cluster, "", "persistentvolumes", "delete", "lib controller.go: deleteVolumeOperation"),
    call(Cluster, "", "persistentvolumeclaims", "list watch", "csi-provisioner.go: claimInformer"),
    call(Cluster, "", "persistentvolumeclaims", "get update", "lib controller.go: rescheduleProvisioning"),
    call(Cluster, "storage.k8s.io", "storageclasses", "list watch", "csi-provisioner.go: scLister"),
    call(Cluster, "storage.k8s.io", "csinodes", "list watch", "csi-provisioner.go: csiNodeLister"),
    call(Cluster, "", "nodes", "list watch", "csi-provisioner.go: nodeLister"),
    call(Cluster, "", "events", "create patch", "lib controller.go: the recorder"),
    call(Namespace, "storage.k8s.io", "csistoragecapacities", "list watch", "csi-provisioner.go: cInformer"),
    call(Namespace, "storage.k8s.io", "csistoragecapacities", "create update delete", "capacity.go"),
    call(Namespace, "", "pods", "get", "owner.go: Lookup"),
    call(Namespace, "apps", "replicasets", "get", "owner.go: Lookup"),
    call(Namespace, "coordination.k8s.io", "leases", "get create update", "csi-lib-utils: leader election"),
];

/// csi-resizer 2.3.
const RESIZER: &[Call] = &[
    call(Cluster, "", "persistentvolumes", "list watch", "controller.go: pvInformer"),
    call(Cluster, "", "persistentvolumes", "patch", "util.go: PatchPersistentVolume"),
    call(Cluster, "", "persistentvolumeclaims", "list watch", "controller.go: pvcInformer"),
    call(Cluster, "", "persistentvolumeclaims/status", "patch", "util.go: PatchClaim"),
    call(Cluster, "", "events", "create patch", "controller.go: the recorder"),
    call(Namespace, "coordination.k8s.io", "leases", "get create update", "csi-lib-utils: leader election"),
];

/// Scope, group, resource and name: the verbs.
type Access = BTreeMap<(Scope, String, String, String), BTreeSet<String>>;

fn needed(calls: &[Call]) -> Access {
    let mut access = Access::new();
    for call in calls {
        assert!(!call.place.is_empty());
        let key = (call.scope, call.group.to_owned(), call.resource.to_owned(), call.name.to_owned());
        access.entry(key).or_default().extend(call.verbs.split(' ').map(str::to_owned));
    }
    access
}

fn granted(all: &[Value], name: &str) -> Access {
    let mut access = Access::new();
    for (scope, kind) in [(Cluster, "ClusterRole"), (Namespace, "Role")] {
        for rule in list(&object(all, kind, name)["rules"]) {
            let names = texts(&rule["resourceNames"]);
            let names = if names.is_empty() { vec![""] } else { names };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for name in &names {
                        let key = (scope, group.to_owned(), resource.to_owned(), (*name).to_owned());
                        let verbs = texts(&rule["verbs"]).into_iter().map(str::to_owned);
                        access.entry(key).or_default().extend(verbs);
                    }
                }
            }
        }
    }
    access
}

#[test]
fn every_role_holds_what_its_program_calls_and_nothing_else() {
    let all = manifests();
    let programs =
        [("quarry-controller", CONTROLLER), ("quarry-provisioner", PROVISIONER), ("quarry-resizer", RESIZER)];
    for (role, calls) in programs {
        assert_eq!(granted(&all, role), needed(calls), "{role}");
    }
    let roles = all.iter().filter(|one| one["kind"] == "ClusterRole" || one["kind"] == "Role").count();
    assert_eq!(roles, 2 * programs.len());
}

#[test]
fn roles_are_bound_to_the_controller_alone_so_that_a_node_may_do_nothing() {
    let all = manifests();
    let bindings: Vec<_> = all
        .iter()
        .filter(|one| one["kind"] == "ClusterRoleBinding" || one["kind"] == "RoleBinding")
        .collect();
    assert_eq!(bindings.len(), 6);
    for binding in bindings {
        let subject = serde_json::json!([{
            "kind": "ServiceAccount", "name": "quarry-controller", "namespace": "quarry-system",
        }]);
        assert_eq!(binding["subjects"], subject, "{binding}");
        assert_eq!(binding["roleRef"]["name"], binding["metadata"]["name"]);
        assert_eq!(format!("{}Binding", binding["roleRef"]["kind"].as_str().unwrap()), binding["kind"]);
    }
}

/// A new kind of object in our own code is seen here; a new verb is seen where the driver runs with these roles.
#[test]
fn every_kind_that_our_code_asks_for_is_in_the_table() {
    let mut kinds = BTreeSet::new();
    for file in super::tools::sources("src/cluster") {
        let text = std::fs::read_to_string(&file).unwrap();
        for start in ["Api<PartialObjectMeta<", "Api<", "Sealed::new::<"] {
            let found = text.split(start).skip(1).filter_map(|rest| rest.split_once('>'));
            kinds.extend(found.map(|(kind, _)| kind.to_owned()));
        }
    }
    kinds.retain(|kind| kind.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let resources: BTreeSet<_> = kinds.iter().map(|kind| format!("{}s", kind.to_lowercase())).collect();
    let table: BTreeSet<_> = CONTROLLER.iter().map(|call| call.resource.to_owned()).collect();
    assert_eq!(resources, table);
}
