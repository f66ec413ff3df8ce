//! From a guest of the lab to a machine that a kubelet can run on.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Order, disk};
use crate::Error;
use crate::paths::{make_folder, read, remove, write};
use crate::program::{command, succeed, succeed_with};

const LIMIT: Duration = Duration::from_secs(60);

/// The node's own files that belong to no program.
pub(super) const FOLDER: &str = "/run/node";

/// Room for the descriptions of thousands of volumes; LVM's default has room for some 700.
const METADATA_SIZE: &str = "16m";

/// Modules that nothing loads by itself when it needs them. The kubelet puts a loop device over each raw block volume.
const MODULES: [&str; 3] = ["loop", "nf_conntrack", "br_netfilter"];

/// What kube-proxy calls, by the names that it knows.
const IPTABLES: [&str; 6] =
    ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/// Modules, network, names, and what programs expect to find.
pub(super) async fn machine(order: &Order) -> Result<(), Error> {
    write(Path::new("/proc/sys/kernel/hostname"), &order.name)?;
    succeed(command("modprobe").arg("--all").args(MODULES), LIMIT).await?;
    network(order).await?;
    make_folder(&programs())?;
    iptables()?;
    crictl(&order.bin)?;
    cpuinfo()
}

async fn network(order: &Order) -> Result<(), Error> {
    let mut lines = vec![
        format!("address add {}/24 dev vec0", order.address),
        "link set vec0 up".to_owned(),
        format!("route add default via {}", order.gateway),
    ];
    lines.extend(order.routes.iter().map(|(subnet, node)| format!("route add {subnet} via {node}")));
    succeed_with(command("ip").args(["-batch", "-"]), LIMIT, &lines.join("\n")).await?;
    write(Path::new("/proc/sys/net/ipv4/ip_forward"), "1")
}

/// A folder of programs that goes before all others.
pub(super) fn programs() -> PathBuf {
    Path::new(FOLDER).join("bin")
}

/// Where a test looks for it that enters the node from a privileged pod.
fn crictl(bin: &Path) -> Result<(), Error> {
    let link = Path::new("/usr/local/bin/crictl");
    remove(link)?;
    symlink(bin.join("crictl"), link).map_err(Error::at("make", link))
}

/// The guest's kernel has the new tables without those for IPv4: the old ones take their names.
fn iptables() -> Result<(), Error> {
    IPTABLES.iter().try_for_each(|name| {
        let link = programs().join(name);
        let program = Path::new("/usr/sbin").join(name.replacen("tables", "tables-legacy", 1));
        symlink(&program, &link).map_err(Error::at("make", &link))
    })
}

/// The kubelet does not start where it cannot read how fast the processor is, and the guest's kernel does not say.
fn cpuinfo() -> Result<(), Error> {
    let place = Path::new("/proc/cpuinfo");
    let text = read(place)?.replacen("bogomips", "cpu MHz\t\t: 2000.000\nbogomips", 1);
    let file = Path::new(FOLDER).join("cpuinfo");
    write(&file, text)?;
    disk::bind(&file, place)
}

/// Makes the volume groups that are not there yet.
pub(super) async fn groups(disks: &[PathBuf], groups: &[Option<String>]) -> Result<(), Error> {
    if groups.iter().all(Option::is_none) {
        return Ok(());
    }
    let present = succeed(command("vgs").args(["--noheadings", "--options", "vg_name"]), LIMIT).await?;
    for (disk, group) in disks.iter().zip(groups) {
        match group {
            Some(group) if !present.split_whitespace().any(|name| name == group) => {
                make_group(disk, group).await?
            }
            _ => {}
        }
    }
    Ok(())
}

async fn make_group(disk: &Path, group: &str) -> Result<(), Error> {
    let mut vgcreate = command("vgcreate");
    vgcreate.args(["--quiet", "--metadatasize", METADATA_SIZE, group]).arg(disk);
    succeed(&mut vgcreate, LIMIT).await.map(drop)
}
