//! ext4, by e2fsprogs.

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

/// ext4.
pub(super) struct Ext4;

#[async_trait::async_trait]
impl FileSystem for Ext4 {
    fn fs_type(&self) -> FsType {
        FsType::Ext4
    }

    /// With a journal, which mke2fs leaves out of anything smaller than 2048 blocks (8 MiB); twice that
    /// leaves room for files.
    fn limits(&self) -> Limits {
        Limits { minimum: Bytes::mib(16), rounds_up: true }
    }

    async fn make(
        &self,
        runner: &dyn Runner,
        device: &Path,
        uuid: FsUuid,
        options: &MakeOptions,
        lock: File,
    ) -> Result<(), FsError> {
        let arguments = make_arguments(device, uuid, options);
        run_ok(runner, Invocation::change(Program::Mke2fs, arguments).with_input(lock)).await?;
        Ok(())
    }

    async fn check(&self, runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
        check::run(runner, device).await
    }

    async fn size(&self, device: &Path, _mount_point: Option<&Path>) -> Result<Bytes, FsError> {
        Ok(look(device).await?.superblock.size())
    }

    async fn growable(&self, device: &Path) -> Result<(), FsError> {
        checked(&look(device).await?.superblock)
    }

    async fn grow(&self, runner: &dyn Runner, _mount_point: &Path, device: &Path) -> Result<Growth, FsError> {
        let before = look(device).await?;
        let (from, available) = (before.superblock.size(), before.device_size);
        if !extent::has_room(device, from, available, before.superblock.block_size())? {
            return Ok(Growth::Nothing);
        }
        checked(&before.superblock)?;
        run_ok(runner, Invocation::change(Program::Resize2fs, [device])).await?;
        let after = look(device).await?.superblock;
        // What would be a group too small for its own tables stays unused.
        extent::grown(device, (from, after.size()), available, after.group_size())
    }
}

/// How ext4 is made (mke2fs(8)).
///
/// * `-T default -b 4096 -I 256`: a small volume may grow large, so it is made as if it were.
/// * `-m 0`: a volume's room is its user's, and root there is nobody special.
/// * `-e remount-ro`: after an error nothing more is written, where the default is to go on.
/// * `nodiscard`: discarding a large device takes minutes, and LVM has its own setting for it.
/// * `lazy_itable_init`: the kernel zeroes inode tables later. The journal is not left for later: a
///   crash might take old blocks in it for new ones.
/// * Without `-F`: mke2fs refuses a device that is mounted or in use. It never asks a question, since
///   its standard input is no terminal.
fn make_arguments(device: &Path, uuid: FsUuid, options: &MakeOptions) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-q", "-t", "ext4", "-T", "default", "-b", "4096", "-I", "256"]
        .into_iter()
        .chain(["-m", "0", "-e", "remount-ro"])
        .chain(["-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=0"])
        .chain(options.iter().flat_map(chosen).copied())
        .map(OsString::from)
        .collect();
    arguments.extend(["-U".into(), uuid.to_string().into(), device.into()]);
    arguments
}

/// What is chosen, in the words of mke2fs.
const fn chosen(option: MakeOption) -> &'static [&'static str] {
    match option {
        MakeOption::Inode4K => &["-i", "4096"],
        MakeOption::Inode64K => &["-i", "65536"],
        MakeOption::Inode1M => &["-i", "1048576"],
        _ => &[],
    }
}

/// Reads the superblock through the page cache, where the kernel keeps that of a mounted ext4 too.
async fn look(device: &Path) -> Result<Look<Superblock>, FsError> {
    extent::look(device, FsType::Ext4, superblock::OFFSET, Superblock::parse).await
}

/// Demands that no error was noted since the last check.
const fn checked(superblock: &Superblock) -> Result<(), FsError> {
    if superblock.has_noted_error() { Err(FsError::Unchecked) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_comes_last_and_nothing_is_forced() {
        let uuid = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap();
        let options = "bytes-per-inode=65536".parse().unwrap();
        let arguments = make_arguments(Path::new("/dev/x"), uuid, &options);
        assert_eq!(arguments.last().unwrap(), "/dev/x");
        assert!(!arguments.iter().any(|argument| argument == "-F"));
        assert!(arguments.iter().any(|argument| *argument == *uuid.to_string()));
    }
}
