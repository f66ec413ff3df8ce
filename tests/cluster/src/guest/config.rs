//! The configuration files of containerd, the CNI plugins and the kubelet.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::prepare::FOLDER;
use super::{Credentials, Order};
use crate::Error;
use crate::images::PAUSE;
use crate::paths;

/// Where the kubelet and `crictl` find containerd.
pub(super) const CONTAINERD: &str = "/run/containerd/containerd.sock";

/// Where the API server finds the kubelet.
pub(super) const KUBELET_PORT: u16 = 10_250;

const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
const NETWORK_CONFIG: &str = "/etc/cni/net.d/10-lab.conflist";

/// Where the kubelet finds its configuration.
pub(super) fn kubelet_config() -> PathBuf {
    Path::new(FOLDER).join("kubelet.json")
}

/// Writes them all.
pub(super) fn write(order: &Order) -> Result<(), Error> {
    write_containerd(&order.bin)?;
    write_whole(Path::new(NETWORK_CONFIG), &network(&order.pod_subnet).to_string())?;
    write_whole(Path::new("/etc/crictl.yaml"), &format!("runtime-endpoint: unix://{CONTAINERD}\n"))?;
    write_whole(&kubelet_config(), &kubelet(&order.credentials, order.gateway).to_string())
}

/// Writes containerd's, which is also needed where there is no node yet.
pub(super) fn write_containerd(bin: &Path) -> Result<(), Error> {
    write_whole(Path::new(CONTAINERD_CONFIG), &containerd(bin))
}

/// What decides how containerd lays images out on a disk.
pub(crate) fn containerd(bin: &Path) -> String {
    format!(
        r#"version = 3
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.differ.v1.erofs",
  "io.containerd.nri.v1.nri",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing",
]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{PAUSE}'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['{}']
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
"#,
        bin.join("cni").display()
    )
}

/// Each pod gets a cable of its own to the node, which knows the way to the other nodes' pods.
fn network(subnet: &str) -> serde_json::Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": subnet }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
                // In memory: after a restart all pods get new addresses.
                "dataDir": Path::new(FOLDER).join("addresses"),
            },
        }],
    })
}

fn kubelet(credentials: &Credentials, dns: Ipv4Addr) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "tlsCertFile": credentials.certificate,
        "tlsPrivateKeyFile": credentials.key,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": credentials.authority },
        },
        "authorization": { "mode": "Webhook" },
        "clusterDomain": "cluster.local",
        "clusterDNS": [dns],
        // The host's search domains are no business of pods.
        "resolvConf": "",
        // The guest's kernel has no cpusets, which the kubelet's own cgroups need.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        // Nothing is evicted, and no image removed, for lack of room: none could be fetched again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "nodeStatusReportFrequency": "10s",
        "syncFrequency": "10s",
    })
}

fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        paths::make_folder(folder)?;
    }
    paths::write(path, text)
}
