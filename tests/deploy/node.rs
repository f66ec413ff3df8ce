//! The node's pod: privileged where mounting needs it, and nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller::{assert_confined, assert_probed};
use super::{container, list, manifests, object, pod, texts};

/// Every folder of the host that the pod has, and why.
const HOST: [(&str, &str); 8] = [
    ("/dev", "the disks and the volumes' device nodes"),
    ("/var/lib/kubelet", "mounts for pods"),
    ("/var/lib/kubelet/plugins/lvm.csi.quarry", "the driver's socket, for the registrar"),
    ("/var/lib/kubelet/plugins_registry", "the registrar's socket"),
    ("/run/lock/lvm", "LVM's locks"),
    ("/run/quarry", "locks on volumes, and a place for mounts that are not ready"),
    ("/var/lib/quarry/backup", "backups of the metadata"),
    ("/etc/lvm", "the host's system id"),
];

fn daemon_set(all: &[Value]) -> &Value {
    object(all, "DaemonSet", "quarry-node")
}

#[test]
fn the_driver_is_privileged_and_its_neighbour_is_not() {
    let all = manifests();
    let quarry = container(daemon_set(&all), "quarry");
    let context = json!({"privileged": true, "runAsUser": 0, "readOnlyRootFilesystem": true});
    assert_eq!(quarry["securityContext"], context);
    assert_confined(container(daemon_set(&all), "csi-node-driver-registrar"));
    assert_eq!(list(&pod(daemon_set(&all))["containers"]).len(), 2);
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod(daemon_set(&all)).get(host).is_none(), "{host}");
    }
}

#[test]
fn it_has_the_folders_of_the_host_that_it_needs_and_no_others() {
    let all = manifests();
    let volumes = list(&pod(daemon_set(&all))["volumes"]);
    let mut paths: Vec<_> = volumes.iter().filter_map(|one| one["hostPath"]["path"].as_str()).collect();
    let mut expected = HOST.map(|(path, _)| path).to_vec();
    paths.sort_unstable();
    expected.sort_unstable();
    assert_eq!(paths, expected);
}

#[test]
fn mounts_reach_the_host_from_the_kubelet_s_folder_alone() {
    let all = manifests();
    let mounts = list(&container(daemon_set(&all), "quarry")["volumeMounts"]);
    let by_name: BTreeMap<_, _> = mounts.iter().map(|one| (one["name"].as_str().unwrap(), one)).collect();
    for (name, mount) in &by_name {
        let propagation = if *name == "kubelet" { json!("Bidirectional") } else { Value::Null };
        assert_eq!(mount.get("mountPropagation").cloned().unwrap_or_default(), propagation, "{name}");
        let read_only = ["lvm", "config", "token", "ca"].contains(name);
        assert_eq!(mount["readOnly"] == true, read_only, "{name}");
    }
    // Calls name the host's paths, so inside they are the same.
    assert_eq!(by_name["kubelet"]["mountPath"], "/var/lib/kubelet");
    assert_eq!(by_name["dev"]["mountPath"], "/dev");
    assert_eq!(by_name["lvm-locks"]["mountPath"], "/run/lock/lvm");
}

#[test]
fn its_only_credential_is_a_token_for_the_controller() {
    let all = manifests();
    let pod = pod(daemon_set(&all));
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(object(&all, "ServiceAccount", "quarry-node")["automountServiceAccountToken"], false);
    let projected: Vec<_> = list(&pod["volumes"]).iter().filter(|one| !one["projected"].is_null()).collect();
    let source = json!([{"serviceAccountToken": {
        "path": "token", "audience": quarry::cluster::AUDIENCE, "expirationSeconds": 3600,
    }}]);
    assert_eq!(projected.len(), 1);
    assert_eq!(projected[0]["projected"]["sources"], source);
    assert!(list(&pod["volumes"]).iter().all(|one| one["secret"].is_null()));
    let authority = list(&pod["volumes"]).iter().find(|one| one["name"] == "ca").unwrap();
    assert_eq!(authority["configMap"], json!({"name": "quarry-ca", "optional": true}));
}

#[test]
fn an_update_replaces_one_driver_at_a_time_and_never_runs_two_on_one_node() {
    let all = manifests();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    assert_eq!(daemon_set(&all)["spec"]["updateStrategy"], strategy);
}

#[test]
fn it_is_not_killed_in_the_middle_of_a_command() {
    let all = manifests();
    let config = object(&all, "ConfigMap", "quarry-config")["data"]["quarry.toml"].as_str().unwrap();
    let settings: quarry::config::Settings = toml::from_str(config).unwrap();
    let grace = quarry::config::Config::resolve(settings, "node").unwrap().grace_period;
    let limit = pod(daemon_set(&all))["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(Duration::from_secs(limit) >= grace + Duration::from_secs(60), "{limit} s after {grace:?}");
    let limits = &container(daemon_set(&all), "quarry")["resources"]["limits"];
    assert!(limits["memory"].is_null(), "LVM may be killed for memory: {limits}");
}

#[test]
fn it_is_probed_where_it_answers() {
    let all = manifests();
    assert_probed(container(daemon_set(&all), "quarry"));
}

#[test]
fn it_runs_wherever_pods_run() {
    let all = manifests();
    assert_eq!(pod(daemon_set(&all))["tolerations"], json!([{"operator": "Exists"}]));
}

#[test]
fn kubelet_and_registrar_know_the_socket_that_the_driver_serves_on() {
    let all = manifests();
    let quarry = texts(&container(daemon_set(&all), "quarry")["args"]);
    let registrar = texts(&container(daemon_set(&all), "csi-node-driver-registrar")["args"]);
    let of =
        |flags: &[&str], name: &str| flags.iter().find_map(|flag| flag.strip_prefix(name).map(str::to_owned));
    let served = of(&quarry, "--endpoint=unix://").unwrap();
    assert_eq!(of(&registrar, "--kubelet-registration-path="), Some(served));
}
