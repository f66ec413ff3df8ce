use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{ParseError, VgUuid};

/// The topology key that says on which node a volume can be made. Its value is a [`NodeName`].
pub const NODE_KEY: &str = "lvm.csi.quarry/node";

/// The topology key that says where a volume is: this, a slash, and the group's UUID.
pub const VG_KEY_PREFIX: &str = "vg.lvm.csi.quarry";

/// A node's name as a label's value: itself, or a hash of it where Kubernetes would not take it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(String);

/// The longest label value that Kubernetes takes, in bytes.
const LONGEST_LABEL: usize = 63;

/// The namespace of the version 5 UUIDs that stand for over-long node names.
const NODES: Uuid = Uuid::from_u128(0x0de5_7a10_c1d4_4a6e_b9a7_2f6b_53d0_18ce);

impl NodeName {
    /// The label value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= LONGEST_LABEL
        && text.bytes().all(inner)
        && ends(text.bytes().next())
        && ends(text.bytes().last())
}

impl FromStr for NodeName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::new("node name", text, "must not be empty"));
        }
        if is_label(text) {
            return Ok(Self(text.to_owned()));
        }
        Ok(Self(Uuid::new_v5(&NODES, text.as_bytes()).simple().to_string()))
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A topology segment that Quarry knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A node, where volumes can be made.
    Node(NodeName),
    /// A group, where volumes are.
    Vg(VgUuid),
}

impl Segment {
    /// The segment as CSI writes it.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let (key, value) = match self {
            Self::Node(name) => (NODE_KEY.to_owned(), name.to_string()),
            Self::Vg(uuid) => (format!("{VG_KEY_PREFIX}/{uuid}"), "true".to_owned()),
        };
        BTreeMap::from([(key, value)])
    }

    /// The segments in one of CSI's maps; `None` where a key is not ours or a value makes no sense,
    /// which is a place that we know nothing of.
    pub fn parse<'a>(map: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Vec<Self>> {
        map.into_iter().map(|(key, value)| Self::parse_one(key, value)).collect()
    }

    fn parse_one(key: &str, value: &str) -> Option<Self> {
        if key == NODE_KEY {
            return value.parse().ok().map(Self::Node);
        }
        let uuid = key.strip_prefix(VG_KEY_PREFIX)?.strip_prefix('/')?.parse().ok()?;
        (value == "true").then_some(Self::Vg(uuid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_node_name_becomes_a_legal_label_and_stays_the_same() {
        let long = "n".repeat(200);
        let value: NodeName = long.parse().unwrap();
        assert!(is_label(value.as_str()));
        assert_eq!(value, long.parse().unwrap());
        assert_eq!("node-1.example".parse::<NodeName>().unwrap().as_str(), "node-1.example");
    }

    #[test]
    fn segments_read_back_and_strange_ones_are_unknown() {
        let uuid = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";
        for segment in [Segment::Node("n1".parse().unwrap()), Segment::Vg(uuid.parse().unwrap())] {
            let map = segment.to_map();
            let pairs = map.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            assert_eq!(Segment::parse(pairs), Some(vec![segment]));
        }
        assert_eq!(Segment::parse([("zone", "a")]), None);
    }

    #[test]
    fn keys_are_part_of_stored_objects_and_never_change() {
        assert_eq!((NODE_KEY, VG_KEY_PREFIX), ("lvm.csi.quarry/node", "vg.lvm.csi.quarry"));
    }
}
