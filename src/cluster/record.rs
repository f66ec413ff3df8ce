use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use uuid::Uuid;

use crate::types::ParseError;

/// The namespace of the version 5 UUIDs whose beginnings stand for nodes' names.
const NAMES: Uuid = Uuid::from_u128(0x6c1f_22d7_58ab_4d0e_9a43_b1e7_0c92_f3d6);

/// The length of what stands for a node, in bytes.
const LENGTH: usize = 8;

/// Which nodes a replica has links to, as it is written down: eight bytes of a hash for each name. An object's
/// annotations may have 256 KiB in all, which is not enough for the names of 10,000 nodes. Where two names had one
/// hash, a node would count as linked that is not, and a label would move later than it could.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkRecord(BTreeSet<[u8; LENGTH]>);

impl LinkRecord {
    /// The record of links to the nodes of these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(mark).collect())
    }

    /// Whether there is a link to the node.
    pub fn contains(&self, node: &str) -> bool {
        self.0.contains(&mark(node))
    }

    /// What stands for its nodes.
    pub(super) fn marks(self) -> impl Iterator<Item = Mark> {
        self.0.into_iter()
    }
}

/// What stands for a node in a record.
pub(super) type Mark = [u8; LENGTH];

/// What stands for the node of that name.
pub(super) fn mark(node: &str) -> Mark {
    let hash = Uuid::new_v5(&NAMES, node.as_bytes()).into_bytes();
    std::array::from_fn(|at| hash[at])
}

impl fmt::Display for LinkRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.0.iter().flatten().copied().collect();
        f.write_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl FromStr for LinkRecord {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("record of links", text, "is none that this release writes");
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| wrong())?;
        let (marks, rest) = bytes.as_chunks();
        if rest.is_empty() { Ok(Self(marks.iter().copied().collect())) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much all annotations of an object may hold (Kubernetes' `TotalAnnotationSizeLimitB`), in bytes.
    const MOST: usize = 256 << 10;

    #[test]
    fn a_record_reads_back() {
        let record = LinkRecord::of(["n2", "n1", "n1"]);
        let text = record.to_string();
        assert_eq!(text.parse::<LinkRecord>().unwrap(), record);
        assert_eq!(LinkRecord::of(["n1", "n2"]).to_string(), text, "whatever the order");
        assert!(record.contains("n1") && record.contains("n2") && !record.contains("n3"));
        assert_eq!("".parse::<LinkRecord>().unwrap(), LinkRecord::default());
    }

    #[test]
    fn what_is_no_record_of_this_release_is_an_error() {
        let whole = LinkRecord::of(["n1"]).to_string();
        for bad in [r#"["n1","n2"]"#, "[]", "?", &whole[1..], &whole[..8]] {
            assert!(bad.parse::<LinkRecord>().is_err(), "{bad}");
        }
    }

    #[test]
    fn twenty_thousand_nodes_fit_into_an_object() {
        let names: Vec<String> =
            (0..20_000).map(|number| format!("ip-10-17-{number}.eu-central-1.compute.internal")).collect();
        let record = LinkRecord::of(names.iter().map(String::as_str));
        assert!(record.0.len() == names.len() && record.to_string().len() < MOST);
    }
}
