//! The image, run as the chart's node pod runs it, on real LVM.
//!
//! What a container runtime would do is done here: the pod's folders of the host, and no others, in a mount table of its
//! own over a root that cannot be written to. The driver is `quarry standalone`, which is `quarry node` without links.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{container, list, manifests, object, pod, tools};
use crate::driver::{self, Driver, Mode, VG, Volume, make_group, mounts_at, report};

const KUBELET: &str = "/var/lib/kubelet";

#[test]
fn the_image_has_all_that_the_driver_needs_and_the_host_sees_what_it_does() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    if !lab::is_guest() {
        unpack(&root);
    }
    lab::Machine::new().disk("2G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(volumes_live(&root));
    });
}

async fn volumes_live(root: &Path) {
    // On a node the folder is there, and systemd has made all mounts shared.
    fs::create_dir_all(KUBELET).unwrap();
    tools::output(Command::new("mount").args(["--bind", KUBELET, KUBELET]));
    tools::output(Command::new("mount").args(["--make-shared", KUBELET]));
    let driver = Driver::launch(contained(root)).await;
    let client = driver.client().await;
    for mode in Mode::ALL {
        let volume = Volume::create(&client, "pvc-a", mode).await;
        volume.start().await;
        assert_eq!(mounts_at(&volume.target), 1, "the host does not see the mount");
        if mode != Mode::Block {
            fs::write(volume.target.join("data"), "kept").unwrap();
        }
        assert_eq!(report("lvs", "lv_active", VG), ["active"]);
        let shown = inside(&driver, root, &["volumes"]);
        assert!(shown.contains(&volume.lv()) && shown.contains(volume.target.to_str().unwrap()), "{shown}");
        assert!(inside(&driver, root, &["check"]).starts_with("0 unhealthy, 0 to note"));
        assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
        if mode != Mode::Block {
            assert_eq!(fs::read_to_string(volume.target.join("data")).unwrap(), "kept");
        }
        volume.end().await;
        assert_eq!(mounts_at(&volume.staging), 0);
        volume.delete().await.unwrap();
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    }
    assert!(driver.stop().success());
}

/// Runs `quarry` in the driver's container, as `kubectl exec` does.
fn inside(driver: &Driver, root: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("/usr/bin/nsenter");
    command.arg(format!("--target={}", driver.pid())).args([
        "--mount",
        "--ipc",
        "--uts",
        "--",
        "/usr/sbin/chroot",
    ]);
    tools::output(command.arg(root).arg("/usr/bin/quarry").args(arguments).env_clear())
}

/// Where in the pod each folder of the host is, and whether it is only to be read.
fn folders() -> Vec<(String, String, bool)> {
    let all = manifests();
    let node = object(&all, "DaemonSet", "quarry-node");
    let on_host = |name: &Value| {
        let volume = list(&pod(node)["volumes"]).iter().find(|volume| volume["name"] == *name).unwrap();
        volume["hostPath"]["path"].as_str().map(str::to_owned)
    };
    let mounts = list(&container(node, "quarry")["volumeMounts"]).iter();
    mounts
        .filter_map(|mount| {
            let inside = mount["mountPath"].as_str().unwrap().to_owned();
            Some((on_host(&mount["name"])?, inside, mount["readOnly"] == true))
        })
        .collect()
}

/// The driver in a container of that root.
fn contained(root: &Path) -> Command {
    let root = root.to_str().unwrap();
    let mut script = format!("set -e\nmount --bind {root} {root}\nmount -o remount,bind,ro {root}\n");
    for (host, inside, read_only) in folders() {
        fs::create_dir_all(&host).unwrap();
        script += &format!("mount --rbind {host} {root}{inside}\n");
        if read_only {
            script += &format!("mount -o remount,bind,ro {root}{inside}\n");
        }
    }
    script += &format!("mount -t proc proc {root}/proc\nmount --rbind /sys {root}/sys\n");
    script += &format!("exec chroot {root} /usr/bin/quarry standalone --volume-group {VG}\n");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--ipc", "--uts", "--propagation", "unchanged", "/bin/sh", "-c"]).arg(script);
    command
}

/// Builds the image if it has to be, and unpacks it (the image layout of OCI), with the folders that a runtime makes.
fn unpack(root: &Path) {
    tools::output(Command::new(tools::built("deploy")).args(["image", "--profile", "dev"]));
    let archive = super::path("target/image/quarry-dev.tar");
    let layout = tempfile::tempdir().unwrap();
    tools::output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(layout.path()));
    let blob = |value: &Value| -> PathBuf {
        let (kind, digest) = value["digest"].as_str().unwrap().split_once(':').unwrap();
        layout.path().join("blobs").join(kind).join(digest)
    };
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let manifest = read(&blob(&read(&layout.path().join("index.json"))["manifests"][0]));
    if root.exists() {
        fs::remove_dir_all(root).unwrap();
    }
    fs::create_dir_all(root).unwrap();
    for layer in list(&manifest["layers"]) {
        tools::output(Command::new("tar").arg("-xf").arg(blob(layer)).arg("-C").arg(root));
    }
    let made = folders().into_iter().map(|(_, inside, _)| inside);
    for folder in made.chain(["/proc".to_owned(), "/sys".to_owned()]) {
        fs::create_dir_all(root.join(&folder[1..])).unwrap();
    }
}
