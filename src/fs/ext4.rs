//! ext4, by e2fsprogs.

mod check;
mod superblock;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use self::superblock::Superblock;
use super::{Check, FileSystem, FsError, Growth, Limits, blocking};
use crate::exec::{Invocation, Program, Runner, run_ok};
use crate::types::{Bytes, FsType, FsUuid};

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
        Limits { minimum: Bytes::mib(16) }
    }

    fn default_mount_options(&self) -> &'static [&'static str] {
        &[]
    }

    async fn make(
        &self,
        runner: &dyn Runner,
        device: &Path,
        uuid: FsUuid,
        lock: File,
    ) -> Result<(), FsError> {
        let invocation = Invocation::change(Program::Mke2fs, make_arguments(device, uuid)).with_input(lock);
        run_ok(runner, invocation).await?;
        Ok(())
    }

    async fn check(&self, runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
        check::run(runner, device).await
    }

    async fn size(&self, device: &Path, _mount_point: Option<&Path>) -> Result<Bytes, FsError> {
        Ok(look(device).await?.superblock.size())
    }

    async fn grow(&self, runner: &dyn Runner, _mount_point: &Path, device: &Path) -> Result<Growth, FsError> {
        let before = look(device).await?;
        let (from, available) = (before.superblock.size(), before.device_size);
        if from > available {
            return Err(FsError::CutOff { device: device.to_owned(), size: from, available });
        }
        if available.saturating_sub(from) < before.superblock.block_size() {
            return Ok(Growth::Nothing);
        }
        run_ok(runner, Invocation::change(Program::Resize2fs, [device])).await?;
        let after = look(device).await?;
        let to = after.superblock.size();
        // What would be a group too small for its own tables stays unused.
        if available.saturating_sub(to) >= after.superblock.group_size() {
            return Err(FsError::Short { device: device.to_owned(), from, to, available });
        }
        Ok(if to == from { Growth::Nothing } else { Growth::Grown { from, to } })
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
fn make_arguments(device: &Path, uuid: FsUuid) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-q", "-t", "ext4", "-T", "default", "-b", "4096", "-I", "256"]
        .into_iter()
        .chain(["-m", "0", "-e", "remount-ro"])
        .chain(["-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=0"])
        .map(OsString::from)
        .collect();
    arguments.extend(["-U".into(), uuid.to_string().into(), device.into()]);
    arguments
}

/// A file system and the device below it.
struct Look {
    superblock: Superblock,
    device_size: Bytes,
}

/// Reads the superblock through the page cache, where the kernel keeps that of a mounted ext4 too.
async fn look(device: &Path) -> Result<Look, FsError> {
    let device: PathBuf = device.to_owned();
    blocking(move || {
        let io = |source| FsError::io(&device, "its superblock cannot be read", source);
        let mut file = File::open(&device).map_err(io)?;
        let mut bytes = [0; superblock::SIZE];
        file.read_exact_at(&mut bytes, superblock::OFFSET).map_err(io)?;
        let end = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(io)?;
        let superblock = Superblock::parse(&bytes).map_err(|reason| FsError::NotThis {
            device: device.clone(),
            expected: FsType::Ext4,
            reason,
        })?;
        Ok(Look { superblock, device_size: Bytes::new(end) })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_comes_last_and_nothing_is_forced() {
        let uuid = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap();
        let arguments = make_arguments(Path::new("/dev/x"), uuid);
        assert_eq!(arguments.last().unwrap(), "/dev/x");
        assert!(!arguments.iter().any(|argument| argument == "-F"));
        assert!(arguments.iter().any(|argument| *argument == *uuid.to_string()));
    }
}
