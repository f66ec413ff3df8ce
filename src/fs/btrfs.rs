//! btrfs, by btrfs-progs: always on one device.

mod superblock;

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::O_EXCL;

use self::superblock::Superblock;
use super::check::{by_code, query};
use super::extent::Look;
use super::{Check, FileSystem, FsError, Growth, Limits, blocking, extent};
use crate::exec::{Invocation, Program, Runner, run_ok};
use crate::types::{Bytes, FsType, FsUuid, MakeOption, MakeOptions};

/// btrfs.
pub(super) struct Btrfs;

#[async_trait::async_trait]
impl FileSystem for Btrfs {
    fn fs_type(&self) -> FsType {
        FsType::Btrfs
    }

    /// mkfs.btrfs demands 109 MiB only, but the kernel resizes none to less than 256 MiB
    /// (`btrfs_ioctl_resize`): a smaller one could not grow by a little.
    fn limits(&self) -> Limits {
        Limits { minimum: Bytes::mib(256), rounds_up: false }
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
        let node = forgotten(device).await?;
        let arguments = make_arguments(&node, uuid, options);
        run_ok(runner, Invocation::change(Program::MkfsBtrfs, arguments).with_input(lock)).await?;
        Ok(())
    }

    /// `btrfs check --readonly` ends with 1 for whatever is wrong (btrfs-check(8)).
    async fn check(&self, runner: &dyn Runner, device: &Path) -> Result<Check, FsError> {
        extent::unused(device).await?;
        let arguments = ["check", "--readonly"].map(OsStr::new).into_iter().chain([device.as_os_str()]);
        by_code(runner, query(Program::Btrfs, arguments)).await
    }

    /// From the superblock, which a mounted btrfs writes through the device's page cache with each commit; what it
    /// tells by statvfs(3) is half of that where data are kept twice (`btrfs_statfs`).
    async fn size(&self, device: &Path, _: Option<&Path>) -> Result<Bytes, FsError> {
        Ok(look(device).await?.superblock.size())
    }

    async fn grow(&self, runner: &dyn Runner, mount_point: &Path, device: &Path) -> Result<Growth, FsError> {
        let Look { superblock, device_size: available } = look(device).await?;
        let (from, least) = (superblock.size(), superblock.sector_size());
        if !extent::has_room(device, from, available, least)? {
            return Ok(Growth::Nothing);
        }
        let words = ["filesystem", "resize", "max"].map(OsStr::new).into_iter();
        let invocation = Invocation::change(Program::Btrfs, words.chain([mount_point.as_os_str()]));
        run_ok(runner, invocation).await?;
        extent::grown(device, (from, look(device).await?.superblock.size()), available, least)
    }
}

/// How btrfs is made (mkfs.btrfs(8)).
///
/// * `-K`: discarding a large device takes minutes, and LVM has its own setting for it.
/// * `-f`: what is on a blank volume is nobody's; without it mkfs.btrfs stops at remains that it knows. A device
///   that is mounted was refused before.
/// * Data once and metadata twice, its authors' choice for one device.
fn make_arguments(device: &Path, uuid: FsUuid, options: &MakeOptions) -> Vec<OsString> {
    let chose = |wanted| options.iter().any(|option| option == wanted);
    let data = if chose(MakeOption::DataTwice) { "dup" } else { "single" };
    let metadata = if chose(MakeOption::MetadataOnce) { "single" } else { "dup" };
    let mut arguments: Vec<OsString> =
        ["-q", "-f", "-K", "-d", data, "-m", metadata].map(OsString::from).into();
    arguments.extend(options.iter().flat_map(checksum).map(OsString::from));
    arguments.extend(["-U".into(), uuid.to_string().into(), device.into()]);
    arguments
}

/// The checksums that are chosen, in the words of mkfs.btrfs.
const fn checksum(option: MakeOption) -> &'static [&'static str] {
    match option {
        MakeOption::XxHash => &["--csum", "xxhash"],
        MakeOption::Sha256 => &["--csum", "sha256"],
        MakeOption::Blake2 => &["--csum", "blake2"],
        _ => &[],
    }
}

/// Wipes the marks of earlier file systems, and gives the path by which mkfs.btrfs is to know the device.
///
/// mkfs.btrfs makes no file system whose UUID is there already, and a damaged one of the volume's own has that
/// UUID. The path goes to the kernel, which keeps it as the name of the device: it must be one that lasts.
async fn forgotten(device: &Path) -> Result<PathBuf, FsError> {
    let device = device.to_owned();
    blocking(move || {
        let failed =
            |source| FsError::io(&device, "the marks of earlier file systems cannot be wiped", source);
        let file = OpenOptions::new().write(true).custom_flags(O_EXCL).open(&device).map_err(failed)?;
        let node = std::fs::canonicalize(&device).map_err(failed)?;
        let (named, meant) = (std::fs::metadata(&node).map_err(failed)?, file.metadata().map_err(failed)?);
        if named.rdev() != meant.rdev() {
            let elsewhere = format!("{} leads to another device now", node.display());
            return Err(failed(io::Error::other(elsewhere)));
        }
        file.write_all_at(&[0; superblock::END], 0).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(node)
    })
    .await
}

/// Reads the first superblock.
async fn look(device: &Path) -> Result<Look<Superblock>, FsError> {
    extent::look(device, FsType::Btrfs, superblock::OFFSET, Superblock::parse).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_comes_last_after_what_is_chosen() {
        let uuid = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap();
        let words = |options: &str| -> Vec<String> {
            let arguments = make_arguments(Path::new("/dev/x"), uuid, &options.parse().unwrap());
            arguments.into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        let end = ["-U".to_owned(), uuid.to_string(), "/dev/x".to_owned()];
        assert_eq!(words("")[3..], [&["-d", "single", "-m", "dup"].map(str::to_owned)[..], &end].concat());
        let chosen = words("metadata=single,data=dup,csum=sha256");
        assert_eq!(chosen[3..9], ["-d", "dup", "-m", "single", "--csum", "sha256"]);
        assert_eq!(chosen[9..], end);
    }
}
