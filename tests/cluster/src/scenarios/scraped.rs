//! Prometheus' view: each part of the driver serves its metrics to whoever is let near, and they are true.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::volumes::{GROUP, LIMIT, MIB, Mode, clear, node_of, pair, room};
use crate::report::Remark;
use crate::{Cluster, Error, Space, wait};

/// The ports of probes and metrics, by the part of the driver.
const PORTS: [(&str, u16); 2] = [("controller", 9808), ("node", NODE_PORT)];

/// That of a node's driver.
pub(super) const NODE_PORT: u16 = 9809;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("scraped").await?;
    space.apply(&pair("user", 128 * MIB, Mode::Filesystem, "")).await?;
    let user = space.pod_ready("user", LIMIT).await?;
    let (node, mut seen) = (node_of(cluster, &user)?, 0);
    let group = format!("vg=\"{GROUP}\"");
    let healthy = || Line { parts: vec!["quarry_vg_healthy{".into(), group.clone()], least: 1 };
    for (part, port) in PORTS {
        for pod in cluster.driver_pods(part).await? {
            let is_here = node_of(cluster, &pod)?.name() == node.name();
            let wanted = match part {
                "controller" => {
                    vec![Line {
                        parts: vec!["quarry_nodes_connected".into()],
                        least: cluster.nodes().len() as u64,
                    }]
                }
                _ if is_here => vec![
                    healthy(),
                    Line {
                        parts: vec!["quarry_vg_free_bytes{".into(), group.clone()],
                        least: room(node).await?,
                    },
                    Line { parts: vec!["NodePublishVolume\"".into(), "code=\"OK\"".into()], least: 1 },
                ],
                _ => vec![healthy()],
            };
            shows(&space, &pod, port, &wanted).await?;
            seen += 1;
        }
    }
    clear(cluster, &space).await?;
    Ok(Remark::from(format!("{seen} pods")))
}

/// A line of metrics that has these parts, and the least value at its end.
#[derive(Debug)]
struct Line {
    parts: Vec<String>,
    least: u64,
}

impl Line {
    /// Whether it is there.
    fn is_in(&self, text: &str) -> bool {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut lines = lines.filter(|line| self.parts.iter().all(|part| line.contains(part.as_str())));
        lines.any(|line| value(line).is_some_and(|value| value >= self.least))
    }
}

/// What a pod of the driver shows at that port to another one, which is called `user`.
pub(super) async fn metrics(space: &Space, user: &str, pod: &Pod, port: u16) -> Result<String, Error> {
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default();
    let url = format!("http://{address}:{port}/metrics");
    space.exec_ok(user, &["wget", "-q", "-O", "-", &url]).await
}

/// Waits until a pod of the driver shows these.
async fn shows(space: &Space, pod: &Pod, port: u16, wanted: &[Line]) -> Result<(), Error> {
    let look = || async {
        let text = metrics(space, "user", pod, port).await?;
        match wanted.iter().find(|line| !line.is_in(&text)) {
            Some(line) => Err(Error::other(format!("there is no {line:?} in:\n{text}"))),
            None => Ok(()),
        }
    };
    wait::try_until(&format!("the metrics of {}", pod.name_any()), LIMIT, look).await
}

/// The whole number at the end of a line.
fn value(line: &str) -> Option<u64> {
    line.rsplit(' ').next()?.parse().ok()
}
