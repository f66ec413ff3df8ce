//! The controller's pod has no privileges at all.

use serde_json::{Value, json};

use super::{container, list, manifests, object, pod, texts};

fn deployment(all: &[Value]) -> &Value {
    object(all, "Deployment", "quarry-controller")
}

/// What every container but one gives up.
pub(super) fn assert_confined(container: &Value) {
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false, "{container}");
    assert_eq!(context["readOnlyRootFilesystem"], true, "{container}");
    assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}), "{container}");
    assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}), "{container}");
    assert!(context.get("privileged").is_none(), "{container}");
}

#[test]
fn it_runs_as_nobody_in_particular_and_sees_nothing_of_the_host() {
    let all = manifests();
    let pod = pod(deployment(&all));
    let context = &pod["securityContext"];
    assert_eq!((&context["runAsNonRoot"], &context["runAsUser"]), (&json!(true), &json!(65532)));
    assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}));
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod.get(host).is_none(), "{host}");
    }
    assert_eq!(pod["volumes"], json!([{"name": "socket", "emptyDir": {}}]));
    list(&pod["containers"]).iter().for_each(assert_confined);
    assert_eq!(list(&pod["containers"]).len(), 3);
}

#[test]
fn its_programs_share_one_socket() {
    let all = manifests();
    let deployment = deployment(&all);
    for (name, flag) in [
        ("quarry", "--endpoint=unix:///csi/csi.sock"),
        ("csi-provisioner", "--csi-address=/csi/csi.sock"),
        ("csi-resizer", "--csi-address=/csi/csi.sock"),
    ] {
        let container = container(deployment, name);
        assert!(texts(&container["args"]).contains(&flag), "{container}");
        assert_eq!(container["volumeMounts"], json!([{"name": "socket", "mountPath": "/csi"}]));
    }
}

#[test]
fn sidecars_elect_one_of_them() {
    let all = manifests();
    for name in ["csi-provisioner", "csi-resizer"] {
        let container = container(deployment(&all), name);
        let flags = texts(&container["args"]);
        assert!(flags.contains(&"--leader-election"), "{name}");
        assert!(flags.contains(&"--feature-gates=ReleaseLeaderElectionOnExit=true"), "{name}");
    }
}

#[test]
fn nodes_find_every_controller_ready_or_not() {
    let all = manifests();
    let service = &object(&all, "Service", "quarry-controller")["spec"];
    assert_eq!(service["clusterIP"], "None");
    assert_eq!(service["publishNotReadyAddresses"], true);
    assert_eq!(service["selector"], deployment(&all)["spec"]["selector"]["matchLabels"]);
    let quarry = container(deployment(&all), "quarry");
    let port = &service["ports"][0];
    let serving = list(&quarry["ports"]).iter().find(|one| one["name"] == port["targetPort"]).unwrap();
    assert_eq!(serving["containerPort"], port["port"]);
    assert!(texts(&quarry["args"]).contains(&format!("--link-address=[::]:{}", port["port"]).as_str()));
}

#[test]
fn it_is_probed_where_it_answers() {
    let all = manifests();
    assert_probed(container(deployment(&all), "quarry"));
}

/// All three probes ask the health endpoint that the flags name.
pub(super) fn assert_probed(quarry: &Value) {
    let health = list(&quarry["ports"]).iter().find(|port| port["name"] == "health").unwrap();
    let served = texts(&quarry["args"]).into_iter().find_map(|flag| flag.strip_prefix("--health-address="));
    let port = served.unwrap().rsplit_once(':').unwrap().1;
    assert_eq!(health["containerPort"].to_string(), port);
    let probes = [("startupProbe", "/livez"), ("readinessProbe", "/healthz"), ("livenessProbe", "/livez")];
    for (probe, path) in probes {
        assert_eq!(quarry[probe]["httpGet"], json!({"path": path, "port": "health"}), "{probe}");
    }
}
