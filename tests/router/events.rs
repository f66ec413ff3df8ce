//! What people see with `kubectl describe`, and what is read of volumes and claims.

use quarry::cluster::{ClaimView, Events, Nodes, Notice, Subject};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::api_server::{ApiServer, Fault, NAMESPACE};

fn events(server: &ApiServer) -> Events {
    let stop = CancellationToken::new();
    let (nodes, watch) = Nodes::new(&server.cluster(), stop.clone());
    tokio::spawn(watch);
    let (events, writer) = Events::new(&server.cluster(), nodes, "replica-1", stop);
    tokio::spawn(writer);
    events
}

fn notice(subject: Subject, note: &str) -> Notice {
    Notice { subject, warning: true, reason: "TestReason", action: "Test", note: note.to_owned() }
}

#[tokio::test]
async fn an_event_says_what_it_is_about_and_is_not_repeated() {
    let server = ApiServer::new();
    let events = events(&server);
    let claim = Subject::Claim { namespace: "prod".into(), name: "db".into(), uid: "u1".into() };
    events.tell(notice(claim.clone(), "the words"));
    events.tell(notice(claim.clone(), "the words"));
    events.tell(notice(claim, "other words"));
    server.until("two events", |server| server.events("db").len() == 2).await;
    let event = server.list("/apis/events.k8s.io/v1/namespaces/prod/events").remove(0);
    assert_eq!(event["regarding"]["kind"], "PersistentVolumeClaim");
    assert_eq!(event["regarding"]["uid"], "u1");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["note"], "the words");
    assert_eq!(event["reportingController"], "lvm.csi.quarry");
    assert_eq!(event["reportingInstance"], "replica-1");
}

#[tokio::test]
async fn events_on_volumes_and_nodes_can_be_found_by_the_objects_uid() {
    let server = ApiServer::new();
    server.put("/api/v1/persistentvolumes", json!({"metadata": {"name": "pvc-1", "uid": "pv-uid"}}));
    server.put("/api/v1/nodes", json!({"metadata": {"name": "n1", "uid": "node-uid"}}));
    let events = events(&server);
    let place = "/apis/events.k8s.io/v1/namespaces/default/events";
    events.tell(notice(Subject::Volume("pvc-1".into()), "lost"));
    events.tell(notice(Subject::Volume("pvc-2".into()), "no such volume, and still an event"));
    server.until("both events", |server| server.list(place).len() == 2).await;
    events.tell(notice(Subject::Node("n1".into()), "shown twice"));
    server.until("the third event", |server| server.list(place).len() == 3).await;
    let uid = |name: &str| {
        let all = server.list(place);
        all.iter().find(|event| event["regarding"]["name"] == name).unwrap()["regarding"]["uid"].clone()
    };
    assert_eq!((uid("pvc-1"), uid("n1"), uid("pvc-2")), (json!("pv-uid"), json!("node-uid"), json!(null)));
}

#[tokio::test(start_paused = true)]
async fn events_never_hold_anybody_up() {
    let server = ApiServer::new();
    server.fault("POST", "events", Fault::Silence);
    let events = events(&server);
    for number in 0..1000 {
        events.tell(notice(Subject::Node("n1".into()), &number.to_string()));
    }
}

#[tokio::test]
async fn volumes_and_claims_are_read() {
    let server = ApiServer::new();
    let cluster = server.cluster();
    let volume = |name: &str, driver: &str, handle: &str| {
        let csi = json!({"driver": driver, "volumeHandle": handle});
        server.put("/api/v1/persistentvolumes", json!({"metadata": {"name": name}, "spec": {"csi": csi}}));
    };
    volume("pvc-1", "lvm.csi.quarry", "vg/a");
    volume("pvc-2", "other.csi", "vg/b");
    server.put(
        "/api/v1/persistentvolumes",
        json!({"metadata": {"name": "nfs"}, "spec": {"nfs": {"path": "/", "server": "s"}}}),
    );
    assert_eq!(cluster.volume_handles("lvm.csi.quarry").await.unwrap(), ["vg/a".to_owned()].into());
    let claims = "/api/v1/namespaces/prod/persistentvolumeclaims";
    server.put(claims, json!({"metadata": {"name": "db", "uid": "u1"}, "spec": {"volumeName": "pvc-1"}}));
    server.put(claims, json!({"metadata": {"name": "new", "uid": "u2"}, "spec": {}}));
    let claim = |name: &'static str| async { cluster.claim("prod", name).await.unwrap() };
    assert_eq!(claim("db").await, Some(ClaimView { uid: "u1".into(), volume: Some("pvc-1".into()) }));
    assert_eq!(claim("new").await.unwrap().volume, None);
    assert_eq!(claim("gone").await, None);
    assert!(cluster.identity().await.unwrap().starts_with("uid-"));
    server.fault("GET", "persistentvolumes", Fault::Code(500));
    assert!(cluster.volume_handles("lvm.csi.quarry").await.is_err(), "half a list is none");
    assert_eq!(NAMESPACE, "quarry");
}
