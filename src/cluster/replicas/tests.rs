use super::*;
use k8s_openapi::jiff::Timestamp;

const MINUTE: Duration = Duration::from_secs(60);

/// A replica's record of links to these nodes, renewed at that second.
fn record(replica: &str, nodes: &[&str], second: i64) -> Lease {
    strange(replica, &LinkRecord::of(nodes.iter().copied()).to_string(), second)
}

/// A record that says this.
fn strange(replica: &str, links: &str, second: i64) -> Lease {
    let mut lease = named(replica, BTreeMap::new());
    terms(&mut lease).renew_time = Some(MicroTime(Timestamp::from_second(second).unwrap()));
    lease.annotations_mut().insert(LINKS.to_owned(), links.to_owned());
    lease
}

/// Looks every ten seconds, from one second up to another, at what `at` gives.
fn watch(sightings: &mut Sightings, start: Instant, seconds: (u64, u64), at: impl Fn(i64) -> Vec<Lease>) {
    for second in (seconds.0..=seconds.1).step_by(10) {
        sightings.take(at(i64::try_from(second).unwrap()), start + Duration::from_secs(second));
    }
}

fn after(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_node_is_unlinked_once_no_record_has_named_it_for_the_whole_time() {
    let (mut sightings, start) = (Sightings::default(), Instant::now());
    watch(&mut sightings, start, (0, 20), |s| vec![record("a", &["n1", "n2"], s), record("b", &[], s)]);
    watch(&mut sightings, start, (30, 80), |s| vec![record("a", &[], s), record("b", &["n2"], s)]);
    assert!(sightings.none_for("n1", MINUTE, after(start, 80)), "gone since second 20");
    assert!(!sightings.none_for("n2", MINUTE, after(start, 80)), "the other replica has a link");
}

#[tokio::test]
async fn nothing_is_certain_before_the_records_were_watched_for_the_whole_time() {
    let (mut sightings, start) = (Sightings::default(), Instant::now());
    assert!(!sightings.none_for("n1", MINUTE, start));
    watch(&mut sightings, start, (0, 50), |s| vec![record("a", &[], s)]);
    assert!(!sightings.none_for("n1", MINUTE, after(start, 59)));
    watch(&mut sightings, start, (60, 60), |s| vec![record("a", &[], s)]);
    assert!(sightings.none_for("n1", MINUTE, after(start, 60)));
    assert!(!sightings.none_for("n1", MINUTE, after(start, 91)), "the last look was too long ago");
}

#[tokio::test]
async fn a_gap_in_the_looks_begins_the_watch_anew() {
    let (mut sightings, start) = (Sightings::default(), Instant::now());
    watch(&mut sightings, start, (0, 60), |s| vec![record("a", &[], s)]);
    watch(&mut sightings, start, (100, 100), |s| vec![record("a", &[], s)]);
    assert!(!sightings.none_for("n1", MINUTE, after(start, 100)));
}

#[tokio::test]
async fn a_record_that_is_not_renewed_says_nothing_after_its_term() {
    let (mut sightings, start) = (Sightings::default(), Instant::now());
    watch(&mut sightings, start, (0, 70), |_| vec![record("dead", &["n1"], 0)]);
    assert!(!sightings.none_for("n1", MINUTE, after(start, 70)), "it counted up to second 20");
    watch(&mut sightings, start, (80, 80), |_| vec![record("dead", &["n1"], 0)]);
    assert!(sightings.none_for("n1", MINUTE, after(start, 80)));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_may_mean_any_node() {
    let (mut sightings, start) = (Sightings::default(), Instant::now());
    watch(&mut sightings, start, (0, 120), |s| vec![strange("other", r#"["n1"]"#, s)]);
    assert!(!sightings.none_for("n1", MINUTE, after(start, 120)));
}

#[test]
fn a_replicas_name_is_a_pods() {
    for good in ["quarry-controller-7d9f-x2", "a", "a.b"] {
        assert_eq!(good.parse::<ReplicaName>().unwrap().as_str(), good);
    }
    for bad in ["", "-a", "A", "a/b", "a_b", &"x".repeat(241)] {
        assert!(bad.parse::<ReplicaName>().is_err(), "{bad}");
    }
}
