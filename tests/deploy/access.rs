//! What the accounts may do at the API server is what the programs do there, no more and no less.
//!
//! The sidecars' tables say where each call is made, in the versions that `tests/cluster/go/go.mod` pins, for a driver
//! with our capabilities (no snapshots, no attaching, no modifying, no secrets). `sidecars` watches them make it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{list, manifests, object, texts};
use crate::router::PERMITTED;

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
    Call { scope, group, resource, verbs, place }
}

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

/// What a sidecar needs.
fn called(calls: &[Call]) -> Access {
    let mut access = Access::new();
    for call in calls {
        assert!(!call.place.is_empty());
        let key = (call.scope, call.group.to_owned(), call.resource.to_owned(), String::new());
        access.entry(key).or_default().extend(call.verbs.split(' ').map(str::to_owned));
    }
    access
}

/// What requests need: `/api/v1/…` or `/apis/GROUP/VERSION/…`, then perhaps a namespace, a resource, a name.
fn asked(lines: &[&str]) -> Access {
    let mut access = Access::new();
    for line in lines {
        let (verb, path) = line.split_once(' ').unwrap();
        let words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, rest) = match words.as_slice() {
            ["api", "v1", rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => panic!("{line}"),
        };
        let (scope, rest) = match rest {
            ["namespaces", "quarry", rest @ ..] => (Namespace, rest),
            ["namespaces", "*", rest @ ..] => (Cluster, rest),
            rest => (Cluster, rest),
        };
        let name = rest.get(1).filter(|name| **name != "*").map_or("", |name| name);
        let key = (scope, group.to_owned(), rest[0].to_owned(), name.to_owned());
        access.entry(key).or_default().insert(verb.to_owned());
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

/// Group and resource: the verbs that a role of that name grants, in the cluster or the namespace.
pub(super) fn verbs(all: &[Value], role: &str) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut verbs = BTreeMap::<_, BTreeSet<String>>::new();
    for ((_, group, resource, _), more) in granted(all, role) {
        verbs.entry((group, resource)).or_default().extend(more);
    }
    verbs
}

#[test]
fn every_role_holds_what_its_program_calls_and_nothing_else() {
    let all = manifests();
    let programs = [
        ("quarry-controller", asked(&PERMITTED)),
        ("quarry-provisioner", called(PROVISIONER)),
        ("quarry-resizer", called(RESIZER)),
    ];
    for (role, needed) in &programs {
        assert_eq!(granted(&all, role), *needed, "{role}");
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
