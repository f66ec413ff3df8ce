//! From the host's file system, read-only, to a root of the guest's own.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;

use super::modules;
use crate::{Error, job};

/// Makes an overlay over the host's files the root, and leaves the old root behind.
pub(super) fn enter(folder: &Path, shares: &[PathBuf]) -> Result<(), Error> {
    let memory = folder.join(job::EMPTY);
    attach("tmpfs", &memory, "mode=755")?;
    attach("proc", Path::new("/proc"), "")?;
    modules::load(&modules::folder()?, "overlay")?;

    let root = memory.join("root");
    for name in ["root", "upper", "work"] {
        make_dir(&memory.join(name))?;
    }
    let layers = format!("lowerdir=/,upperdir={0}/upper,workdir={0}/work", memory.display());
    attach("overlay", &root, &layers)?;
    attach_kernel_files(&root)?;
    attach_host_folders(&root, folder, shares)?;
    change_root(&root)
}

/// The file systems that every Linux system has, in the places where it has them.
fn attach_kernel_files(root: &Path) -> Result<(), Error> {
    let table = [
        ("proc", "proc", ""),
        ("sysfs", "sys", ""),
        ("cgroup2", "sys/fs/cgroup", ""),
        ("devtmpfs", "dev", "mode=755"),
        ("devpts", "dev/pts", "gid=5,mode=620,ptmxmode=666"),
        ("tmpfs", "dev/shm", "mode=1777"),
        ("mqueue", "dev/mqueue", ""),
        ("tmpfs", "run", "mode=755"),
    ];
    for (kind, place, options) in table {
        let place = root.join(place);
        make_dir(&place)?;
        attach(kind, &place, options)?;
    }
    make_dir(&root.join("run/lock/lvm"))?;
    bind_modules(root)
}

/// Puts the kernel's modules where modprobe looks for them.
fn bind_modules(root: &Path) -> Result<(), Error> {
    let from = modules::folder()?;
    let to = root.join("lib/modules").join(from.file_name().unwrap_or_default());
    make_dir(&to)?;
    mount(Some(&from), &to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|errno| Error::at("bind the modules to", &to)(errno.into()))
}

/// The folders of the host that the guest may write into.
fn attach_host_folders(root: &Path, folder: &Path, shares: &[PathBuf]) -> Result<(), Error> {
    attach_host_folder(folder, &beneath(root, Path::new(job::GUEST_FOLDER)))?;
    shares.iter().try_for_each(|share| attach_host_folder(share, &beneath(root, share)))
}

fn attach_host_folder(folder: &Path, place: &Path) -> Result<(), Error> {
    make_dir(place)?;
    mount(Some("host"), place, Some("hostfs"), MsFlags::empty(), Some(folder))
        .map_err(|errno| Error::at("mount the host's folder at", place)(errno.into()))
}

/// The place of an absolute path below another root.
fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Not with chroot: there, every reader of the mount table would see the host's root, which no real machine shows.
fn change_root(root: &Path) -> Result<(), Error> {
    let fail = |errno: nix::Error| Error::at("change the root to", root)(errno.into());
    nix::unistd::chdir(root).map_err(fail)?;
    // The old root ends up on top of the new one, at the same place, and is taken off it.
    pivot_root(".", ".").map_err(fail)?;
    umount2(".", MntFlags::MNT_DETACH).map_err(fail)?;
    nix::unistd::chdir("/").map_err(fail)
}

fn attach(kind: &str, place: &Path, options: &str) -> Result<(), Error> {
    mount(Some(kind), place, Some(kind), MsFlags::empty(), Some(options))
        .map_err(|errno| Error::at(&format!("mount {kind} at"), place)(errno.into()))
}

fn make_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::at("make", path))
}
