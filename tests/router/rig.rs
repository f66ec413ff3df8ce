//! A whole controller over real sockets: sidecars on the one side, nodes on the other, an API server in memory
//! behind it.

mod mounts;
mod node;
mod replica;
mod stub;

pub(crate) use mounts::{Mounts, bundle};
pub(crate) use node::{Node, vg_uuid};
pub(crate) use replica::Replica;
pub(crate) use stub::{Stub, Unused};

use std::collections::HashMap;
use std::time::Duration;

use quarry::link::Tuning;
use quarry::proto::csi::v1 as csi;
use quarry::router::Pace;
use quarry::types::{NODE_KEY, VG_KEY_PREFIX};
use tonic::{Code, Status};

/// No wait in a test takes longer than this.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// One MiB, in bytes.
pub(crate) const MIB: i64 = 1 << 20;

/// Short times for links, where a test waits for them to pass.
pub(crate) fn brisk() -> Tuning {
    Tuning {
        ping: Duration::from_millis(200),
        pong: Duration::from_millis(300),
        backoff_least: Duration::from_millis(10),
        backoff_most: Duration::from_millis(50),
        lookup: Duration::from_millis(100),
        ..Tuning::default()
    }
}

/// Times in which nothing counts as gone before the test is over.
pub(crate) fn patient() -> Pace {
    Pace { round: Duration::from_millis(100), gather: Duration::from_millis(10), ..Pace::default() }
}

/// Times in which whatever is not there counts as gone at once.
pub(crate) fn hasty() -> Pace {
    Pace { away: Duration::from_millis(300), ..patient() }
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, wait).await.unwrap_or_else(|_| panic!("not within {BOUND:?}: {what}"))
}

/// Asks again and again until the answer is right.
pub(crate) async fn until<T: std::fmt::Debug>(
    what: &str,
    mut ask: impl AsyncFnMut() -> T,
    right: impl Fn(&T) -> bool,
) -> T {
    let end = tokio::time::Instant::now() + BOUND;
    loop {
        let answer = ask().await;
        if right(&answer) {
            return answer;
        }
        assert!(tokio::time::Instant::now() < end, "not within {BOUND:?}: {what}; it is {answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn block() -> csi::VolumeCapability {
    use csi::volume_capability::{AccessMode, AccessType, BlockVolume, access_mode::Mode};
    csi::VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    }
}

fn topology(key: &str, value: &str) -> csi::Topology {
    csi::Topology { segments: HashMap::from([(key.to_owned(), value.to_owned())]) }
}

pub(crate) fn at_node(node: &str) -> csi::Topology {
    topology(NODE_KEY, node)
}

pub(crate) fn at_vg(vg: &str) -> csi::Topology {
    topology(&format!("{VG_KEY_PREFIX}/{vg}"), "true")
}

/// A create as csi-provisioner sends it: for one node where the scheduler chose one, for any otherwise.
pub(crate) fn create(name: &str, mib: i64, node: Option<&str>) -> csi::CreateVolumeRequest {
    let place = node.map(|node| csi::TopologyRequirement {
        requisite: vec![at_node(node)],
        preferred: vec![at_node(node)],
    });
    csi::CreateVolumeRequest {
        name: name.to_owned(),
        volume_capabilities: vec![block()],
        capacity_range: Some(csi::CapacityRange { required_bytes: mib * MIB, limit_bytes: 0 }),
        parameters: HashMap::from([("volumeGroup".to_owned(), "vg0".to_owned())]),
        accessibility_requirements: place,
        ..Default::default()
    }
}

#[track_caller]
pub(crate) fn refused<T>(answer: Result<T, Status>, code: Code, words: &str) {
    let status = answer.err().expect("it was not refused");
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{words:?} is not in: {}", status.message());
    let told = status.metadata().keys().any(|key| format!("{key:?}").contains("quarry"));
    assert!(status.details().is_empty() && !told, "what nodes and controllers tell each other: {status:?}");
}
