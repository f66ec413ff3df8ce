//! One leader among the replicas, and what each records of its links.

use std::collections::BTreeSet;
use std::time::Duration;

use quarry::cluster::{Cluster, Election, Leadership, LinkRecord, Replica, Replicas};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api_server::ApiServer;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/quarry/leases";
const MINUTE: Duration = Duration::from_secs(60);

struct Candidate {
    leadership: Leadership,
    stop: CancellationToken,
    tasks: TaskTracker,
}

fn stand(cluster: &Cluster, name: &str) -> Candidate {
    let (election, leadership) = Election::new(cluster, name);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    tasks.spawn(election.run(stop.clone()));
    tasks.close();
    Candidate { leadership, stop, tasks }
}

impl Candidate {
    async fn leads(&mut self) {
        let wait = async {
            while !self.leadership.holds() {
                self.leadership.changed().await;
            }
        };
        tokio::time::timeout(10 * MINUTE, wait).await.unwrap();
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

fn holder(server: &ApiServer) -> Value {
    server.get(LEASES, "quarry-controller").unwrap()["spec"]["holderIdentity"].clone()
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_follows_at_once_when_it_stops() {
    let server = ApiServer::new();
    let mut a = stand(&server.cluster(), "a");
    a.leads().await;
    let mut b = stand(&server.cluster(), "b");
    sleep(MINUTE).await;
    assert!(a.leadership.holds() && !b.leadership.holds());
    assert_eq!(holder(&server), "a");
    a.stop().await;
    assert_eq!(holder(&server), "", "given up");
    let before = tokio::time::Instant::now();
    b.leads().await;
    assert!(before.elapsed() <= Duration::from_secs(5), "nobody waits for a lease that was given up");
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_leading_before_another_begins() {
    let server = ApiServer::new();
    let (cluster, cut) = server.cluster_with_cut();
    let mut a = stand(&cluster, "a");
    a.leads().await;
    let b = stand(&server.cluster(), "b");
    sleep(Duration::from_secs(7)).await;
    cut.cut();
    for _ in 0..600 {
        assert!(!(a.leadership.holds() && b.leadership.holds()), "two leaders");
        sleep(Duration::from_millis(100)).await;
    }
    assert!(b.leadership.holds());
    cut.mend();
    sleep(MINUTE).await;
    assert!(b.leadership.holds() && !a.leadership.holds());
    a.stop().await;
    assert_eq!(holder(&server), "b", "whoever does not hold the lease does not give it up");
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_its_term_by_ones_own_clock() {
    let server = ApiServer::new();
    let (mut dead, leadership) = Election::new(&server.cluster(), "dead");
    dead.round().await;
    assert!(leadership.holds());
    drop(dead);
    let mut b = stand(&server.cluster(), "b");
    sleep(Duration::from_secs(14)).await;
    assert!(!b.leadership.holds(), "its term is not over");
    b.leads().await;
    assert_eq!(holder(&server), "b");
}

#[tokio::test(start_paused = true)]
async fn two_that_grab_a_free_lease_at_once_do_not_both_get_it() {
    let server = ApiServer::new();
    let (mut a, a_leads) = Election::new(&server.cluster(), "a");
    let (mut b, b_leads) = Election::new(&server.cluster(), "b");
    tokio::join!(a.round(), b.round());
    assert!(a_leads.holds() != b_leads.holds());
}

fn nodes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_leader_knows_when_no_replica_has_had_a_link_for_a_minute() {
    let server = ApiServer::new();
    let replica = |name: &str| Replica::new(&server.cluster(), name.parse().unwrap(), Some("uid".into()));
    let (mut a, mut b) = (replica("a"), replica("b"));
    let mut seen = Replicas::new(&server.cluster());
    let (both, none) = (nodes(&["n1", "n2"]), nodes(&[]));
    for round in 0..13 {
        a.record(if round < 2 { &both } else { &none }).await.unwrap();
        b.record(if round < 4 { &both } else { &none }).await.unwrap();
        seen.look().await.unwrap();
        // b has n1 up to second 30.
        assert_eq!(seen.none_for("n1", MINUTE), round >= 9, "round {round}");
        sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_takes_its_record_along_and_leaves_that_of_a_successor() {
    let server = ApiServer::new();
    let mut a = Replica::new(&server.cluster(), "a".parse().unwrap(), Some("uid-of-pod".into()));
    a.record(&nodes(&["n1"])).await.unwrap();
    let lease = server.get(LEASES, "a.links").unwrap();
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], "uid-of-pod");
    let record = LinkRecord::of(["n1"]).to_string();
    assert_eq!(lease["metadata"]["annotations"]["lvm.csi.quarry/links"], record);
    a.retire().await.unwrap();
    assert!(server.get(LEASES, "a.links").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_record_that_somebody_changed_is_written_all_the_same() {
    let server = ApiServer::new();
    let mut a = Replica::new(&server.cluster(), "a".parse().unwrap(), None);
    a.record(&nodes(&["n1"])).await.unwrap();
    server.put(LEASES, server.get(LEASES, "a.links").unwrap());
    assert!(a.record(&nodes(&["n2"])).await.is_err(), "it is another than was read");
    a.record(&nodes(&["n2"])).await.unwrap();
    assert_eq!(
        server.get(LEASES, "a.links").unwrap()["metadata"]["annotations"]["lvm.csi.quarry/links"],
        LinkRecord::of(["n2"]).to_string()
    );
}
