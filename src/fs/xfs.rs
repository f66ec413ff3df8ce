//! XFS, by xfsprogs.

mod check;
mod superblock;

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use self::superblock::Superblock;
use super::extent::Look;
use super::{Check, FileSystem, FsError, Growth, Limits, extent};
use crate::exec::{Invocation, Program, Runner, run_ok};
use crate::types::{Bytes, FsType, FsUuid, MakeOption, MakeOptions};

/// XFS.
pub(super) struct Xfs;

#[async_trait::async_trait]
impl FileSystem for Xfs {
    fn fs_type(&self) -> FsType {
        FsType::Xfs
    }

    /// What mkfs.xfs demands since 5.19 ("Filesystem must be larger than 300MB"): less comes to a log and
    /// groups so small that it never gets well again when it grows.
    fn limits(&self) -> Limits {
        Limits { minimum: Bytes::mib(300), rounds_up: false }
    }

    async fn make(
        &self,
        runner: &dyn Runner,
        device: &Path,
        uuid: FsUuid,
        options: &MakeOptions,
        lock: File,
    ) -> Result<(), FsError> {
        extent::unused(device).await?;
        let arguments = make_arguments(device, uuid, options);
        run_ok(runner, Invocation::change(Program::MkfsXfs, arguments).with_input(lock)).await?;
        Ok(())
    }

    async fn check(&self, runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
        extent::unused(device).await?;
        check::run(runner, device).await
    }

    async fn size(&self, device: &Path, mount_point: Option<&Path>) -> Result<Bytes, FsError> {
        let look = look(device).await?;
        match mount_point {
            None => Ok(look.superblock.size()),
            Some(mount_point) => Ok(look.superblock.with_log(extent::mounted(mount_point).await?)),
        }
    }

    /// Linux before 6.12 replays the growth of the last allocation group, and takes that for as small as it was until it
    /// is mounted again: what is done in its new part ends with "Structure needs cleaning" (xfs: "update the pag for the
    /// last AG at recovery time").
    fn forgets_replayed_growth(&self) -> bool {
        true
    }

    async fn grow(&self, runner: &dyn Runner, mount_point: &Path, device: &Path) -> Result<Growth, FsError> {
        let Look { superblock, device_size: available } = look(device).await?;
        let size = async || extent::mounted(mount_point).await.map(|told| superblock.with_log(told));
        let (from, least) = (size().await?, superblock.smallest_growth());
        let to = if extent::has_room(device, from, available, least)? {
            run_ok(runner, Invocation::change(Program::XfsGrowfs, ["-d".as_ref(), mount_point])).await?;
            size().await?
        } else {
            from
        };
        if superblock.size() != to {
            write_superblock(runner, mount_point, &superblock).await?;
        }
        extent::grown(device, (from, to), available, least)
    }
}

/// How XFS is made (mkfs.xfs(8)).
///
/// * `-K`: discarding a large device takes minutes, and LVM has its own setting for it.
/// * `-f`: what is on a blank volume is nobody's; without it mkfs.xfs stops at remains that it knows. A device
///   that is mounted it refuses all the same.
/// * All else is as its authors advise for the size: checksums, reflinks, big timestamps. How the device is cut
///   into groups stays when it grows, so a volume that is to be large is best made large.
fn make_arguments(device: &Path, uuid: FsUuid, options: &MakeOptions) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-q", "-f", "-K", "-m"].map(OsString::from).into();
    arguments.push(format!("uuid={uuid}").into());
    arguments.extend(options.iter().flat_map(chosen).map(OsString::from));
    arguments.push(device.into());
    arguments
}

/// What is chosen, in the words of mkfs.xfs.
const fn chosen(option: MakeOption) -> &'static [&'static str] {
    match option {
        MakeOption::NoReflink => &["-m", "reflink=0"],
        MakeOption::ReverseMap => &["-m", "rmapbt=1"],
        _ => &[],
    }
}

/// Has the superblock of a mounted XFS written to its place on the disk, where the new size stands in its log only for
/// up to half a minute otherwise. Linux before 6.12 cannot replay a log that tells of use of what XFS has grown by: a
/// power cut in that time would leave a file system that cannot be mounted (xfs: "update the file system geometry after
/// recoverying superblock buffers").
///
/// What does that is setting the label, here to what it is (`xfs_sync_sb_buf`). Freezing would do it too, but would
/// stop the user's pod, and for good where the driver ends before it has thawed it.
async fn write_superblock(
    runner: &dyn Runner,
    mount_point: &Path,
    superblock: &Superblock,
) -> Result<(), FsError> {
    let Some(order) = superblock.label().map(relabel) else {
        tracing::warn!("its label is no word, which xfs_io cannot be told: its new size is written later");
        return Ok(());
    };
    let arguments = ["-c".as_ref(), order.as_ref(), mount_point.as_os_str()];
    run_ok(runner, Invocation::change(Program::XfsIo, arguments)).await?;
    Ok(())
}

/// The command of xfs_io(8) by which a label is set.
fn relabel(label: &str) -> String {
    if label.is_empty() { "label -c".to_owned() } else { format!("label -s {label}") }
}

/// Reads the superblock as it is on the disk. That of a mounted XFS may be older than what has grown.
async fn look(device: &Path) -> Result<Look<Superblock>, FsError> {
    extent::look(device, FsType::Xfs, 0, Superblock::parse).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_comes_last_after_what_is_chosen() {
        let uuid = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap();
        let arguments = make_arguments(Path::new("/dev/x"), uuid, &"rmapbt=1".parse().unwrap());
        let words: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words[3..], ["-m", &format!("uuid={uuid}"), "-m", "rmapbt=1", "/dev/x"]);
    }
}
