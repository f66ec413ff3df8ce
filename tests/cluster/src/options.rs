//! What kind of cluster is wanted.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The most nodes that a cluster can have here.
pub const MOST_NODES: usize = 8;

/// A cluster: its nodes, and images beyond those that every node has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// The nodes: `node1`, `node2`, …
    pub nodes: Vec<NodeOptions>,
    /// OCI archives, which each node imports when the cluster starts.
    pub images: Vec<PathBuf>,
    /// The driver's image, an OCI archive; without it no driver is installed.
    pub driver: Option<PathBuf>,
}

impl Options {
    /// So many nodes, all alike.
    pub fn alike(nodes: usize, node: &NodeOptions) -> Options {
        Options { nodes: vec![node.clone(); nodes], images: Vec::new(), driver: None }
    }

    /// How many nodes there are to be.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] when that is none or more than [`MOST_NODES`].
    pub(crate) fn count(&self) -> Result<u8, Error> {
        let fits = (1..=MOST_NODES).contains(&self.nodes.len());
        let count = u8::try_from(self.nodes.len()).ok().filter(|_| fits);
        count.ok_or_else(|| {
            Error::other(format!("a cluster has 1 to {MOST_NODES} nodes, not {}", self.nodes.len()))
        })
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::alike(2, &NodeOptions::default())
    }
}

/// One node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeOptions {
    /// The size of its memory, such as `2G`.
    pub memory: String,
    /// Its disks, apart from the one that is its own: `/dev/ubdb`, `/dev/ubdc`, …
    pub disks: Vec<DiskOptions>,
}

impl Default for NodeOptions {
    /// 2 GiB of memory, a disk of 12 GiB with a volume group `quarry`, and an empty one of 4 GiB.
    fn default() -> NodeOptions {
        let disk = |size: &str, group: Option<&str>| DiskOptions {
            size: size.to_owned(),
            group: group.map(str::to_owned),
        };
        NodeOptions { memory: "2G".to_owned(), disks: vec![disk("12G", Some("quarry")), disk("4G", None)] }
    }
}

/// One disk of a node. Written as `SIZE` or `SIZE:GROUP`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOptions {
    /// Its size, such as `4G`. It takes room on this machine only where it is written to.
    pub size: String,
    /// The volume group to make on it, if any.
    pub group: Option<String>,
}

impl FromStr for DiskOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<DiskOptions, Error> {
        let (size, group) = match text.split_once(':') {
            Some((size, group)) => (size, Some(group)),
            None => (text, None),
        };
        lab::parse_size(size)?;
        if group.is_some_and(str::is_empty) {
            return Err(Error::other(format!("{text:?} names no volume group")));
        }
        Ok(DiskOptions { size: size.to_owned(), group: group.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_size_with_or_without_a_group() {
        let disk = |text: &str| text.parse::<DiskOptions>().map(|disk| (disk.size, disk.group)).ok();
        assert_eq!(disk("4G"), Some(("4G".into(), None)));
        assert_eq!(disk("512M:vg1"), Some(("512M".into(), Some("vg1".into()))));
        assert_eq!(disk("4G:"), None);
        assert_eq!(disk("much"), None);
    }

    #[test]
    fn a_cluster_has_some_nodes_and_not_too_many() {
        let count = |nodes| Options::alike(nodes, &NodeOptions::default()).count().ok();
        assert_eq!([count(0), count(1), count(8), count(9)], [None, Some(1), Some(8), None]);
    }
}
