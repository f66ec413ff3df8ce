//! The images that every node has: those that Kubernetes itself and its tests ask for, and the CSI sidecars.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Image, Layer, write_archive};
use crate::digest::Digest;
use crate::paths::{self, Paths};
use crate::program::{command, succeed};
use crate::programs::Versions;
use crate::{Error, say};

/// The image of the container that holds a pod's namespaces: containerd has to be told.
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// Where Kubernetes' tests take their images from. Nothing is ever fetched: all images lie on the nodes' disks.
const TESTS: &str = "registry.k8s.io/e2e-test-images";

/// Where the CSI sidecars' stock images are.
const SIDECARS: &str = "registry.k8s.io/sig-storage";

/// The version of csi-node-driver-registrar that the stand-in takes the place of.
const REGISTRAR: &str = "v2.17.0";

/// Grows when the images change though nothing that they are made of does.
const EDITION: &str = "3";

/// What the driver's examples run.
const BUSYBOX_IMAGE: &str = "docker.io/library/busybox:1.37";

const BUSYBOX: &str = "/bin/busybox";

/// A program of Debian's own or what it needs, under its name in an image.
type File = (&'static str, &'static str);

/// The C library.
const LIBC: [File; 2] = [
    ("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
    ("lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"),
];

/// A `dd` that can do without the page cache, and a shell that runs it: a busybox's runs its own.
const DD: [File; 2] = [("bin/dd", "/bin/dd"), ("bin/sh", "/bin/dash")];

/// What enters a node from a pod and runs the node's shell: a busybox's would bring its own along.
const NSENTER: [File; 3] = [
    ("bin/nsenter", "/usr/bin/nsenter"),
    ("lib/x86_64-linux-gnu/libselinux.so.1", "/lib/x86_64-linux-gnu/libselinux.so.1"),
    ("lib/x86_64-linux-gnu/libpcre2-8.so.0", "/lib/x86_64-linux-gnu/libpcre2-8.so.0"),
];

const PAUSE_SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/images/pause.c");
const LIMIT: Duration = Duration::from_secs(120);

/// Makes the archive of all of them, unless it is there. `programs` is the key of the programs that go into it.
pub(super) async fn build(paths: &Paths, programs: &str) -> Result<PathBuf, Error> {
    let busybox = std::fs::read(BUSYBOX).map_err(Error::io(format!("read {BUSYBOX}")))?;
    let mut key = Digest::new();
    key.add(EDITION).add(programs).add(&busybox).add(paths::read(Path::new(PAUSE_SOURCE))?);
    for (_, file) in LIBC.iter().chain(&DD).chain(&NSENTER) {
        key.add(std::fs::read(file).map_err(Error::io(format!("read {file}")))?);
    }
    let key = key.to_hex();
    let archive = paths.images().join(format!("base-{key}.tar"));
    if !archive.is_file() {
        say("make the images");
        let images = images(paths).await?;
        write_archive(&archive, &images)?;
        super::keep_only(paths, "base-", &archive)?;
    }
    Ok(archive)
}

async fn images(paths: &Paths) -> Result<Vec<Image>, Error> {
    let versions = Versions::of_module()?;
    let busybox = busybox().await?;
    // The tests that name nginx run a script in it.
    let shells = ["busybox:1.37.0-1", "busybox:1.37.0-2", "nginx:1.27.0-2", "nginx:1.28.0-2"];
    let agnhost = Layer::new().file("agnhost", 0o755, paths.bin().join("agnhost"));
    let provisioner = versions.of("github.com/kubernetes-csi/external-provisioner/v6")?;
    let resizer = versions.of("github.com/kubernetes-csi/external-resizer/v2")?;
    Ok(vec![
        Image::new([PAUSE])
            .layer(Layer::new().file("pause", 0o755, pause(paths).await?))
            .entrypoint("/pause"),
        Image::new(
            shells.map(|name| format!("{TESTS}/{name}")).into_iter().chain([BUSYBOX_IMAGE.to_owned()]),
        )
        .layer(busybox.clone())
        .arguments(&["sh"]),
        Image::new([format!("{TESTS}/glibc-dns-testing:2.1.1")])
            .layer(busybox.clone())
            .layer(files(&LIBC))
            .layer(files(&DD))
            .arguments(&["sh"]),
        Image::new([format!("{TESTS}/agnhost:2.66.1")])
            .layer(busybox)
            .layer(files(&LIBC))
            .layer(files(&NSENTER))
            .layer(agnhost)
            .entrypoint("/agnhost")
            .arguments(&["pause"]),
        sidecar(paths, "csi-provisioner", provisioner),
        sidecar(paths, "csi-resizer", resizer),
        sidecar(paths, "csi-node-driver-registrar", REGISTRAR),
    ])
}

fn files(files: &[File]) -> Layer {
    files.iter().fold(Layer::new(), |layer, &(name, file)| layer.file(name, 0o755, file))
}

/// One program and nothing else, as the stock images are.
fn sidecar(paths: &Paths, name: &str, version: &str) -> Image {
    Image::new([format!("{SIDECARS}/{name}:{version}")])
        .layer(Layer::new().file(name, 0o755, paths.bin().join(name)))
        .entrypoint(&format!("/{name}"))
}

/// Debian's busybox under all its names.
async fn busybox() -> Result<Layer, Error> {
    let layer = Layer::new()
        .folder("tmp", 0o1777)
        .folder("root", 0o700)
        .text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        .text("etc/group", "root:x:0:\nnogroup:x:65534:\n")
        .file("bin/busybox", 0o755, BUSYBOX);
    let names = succeed(command(BUSYBOX).arg("--list"), LIMIT).await?;
    let names = names.lines().filter(|name| *name != "busybox");
    Ok(names.fold(layer, |layer, name| layer.link(format!("bin/{name}"), "busybox")))
}

async fn pause(paths: &Paths) -> Result<PathBuf, Error> {
    let program = paths.images().join("pause");
    succeed(command("gcc").args(["-static", "-Os", "-s", "-o"]).arg(&program).arg(PAUSE_SOURCE), LIMIT)
        .await?;
    Ok(program)
}
