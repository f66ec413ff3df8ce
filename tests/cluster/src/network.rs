//! The cluster's network: a bridge, and a cable from it to each node. It lies in a network namespace of its own.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use crate::program::{command, succeed_with};
use crate::{Error, paths};

/// The host's own address: the control plane and the cluster's DNS.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);
/// All pods.
pub(crate) const PODS: &str = "10.244.0.0/16";
/// All services.
pub(crate) const SERVICES: &str = "10.96.0.0/16";
/// The service `kubernetes`: the API server, as pods see it.
pub(crate) const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

const LIMIT: Duration = Duration::from_secs(20);

/// The node of this number, counted from 1.
pub(crate) fn node_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 250, 0, 10 + number)
}

/// The addresses of a node's pods.
pub(crate) fn pod_subnet(number: u8) -> String {
    format!("10.244.{number}.0/24")
}

/// The host's end of a node's cable.
pub(crate) fn tap(number: u8) -> String {
    format!("tap{number}")
}

/// The node's end of it. It stays the same when the node starts again: its neighbours remember it.
pub(crate) fn hardware_address(number: u8) -> [u8; 6] {
    let [_, a, b, c] = node_address(number).octets();
    [0x02, 0, 10, a, b, c]
}

/// Makes it in the namespace that this process is in.
pub(crate) async fn set_up(nodes: u8) -> Result<(), Error> {
    let mut lines = vec![
        "link set lo up".to_owned(),
        "link add br0 type bridge".to_owned(),
        format!("address add {GATEWAY}/24 dev br0"),
        "link set br0 up".to_owned(),
    ];
    for number in 1..=nodes {
        let tap = tap(number);
        lines.push(format!("tuntap add dev {tap} mode tap"));
        lines.push(format!("link set {tap} master br0 up"));
        lines.push(format!("route add {} via {}", pod_subnet(number), node_address(number)));
    }
    // Any node knows the way to a service; the first one is always there.
    lines.push(format!("route add {SERVICES} via {}", node_address(1)));
    succeed_with(command("ip").args(["-batch", "-"]), LIMIT, &lines.join("\n")).await?;
    paths::write(Path::new("/proc/sys/net/ipv4/ip_forward"), "1")
}
