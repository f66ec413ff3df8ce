use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A program that Quarry uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// LVM's one binary (lvm2).
    Lvm,
    /// Low-level probing of what a device holds (util-linux).
    Blkid,
    /// Makes ext4 (e2fsprogs).
    Mke2fs,
    /// Checks ext4 (e2fsprogs).
    E2fsck,
    /// Grows ext4 (e2fsprogs).
    Resize2fs,
    /// Makes XFS (xfsprogs).
    MkfsXfs,
    /// Checks XFS (xfsprogs).
    XfsRepair,
    /// Grows XFS (xfsprogs).
    XfsGrowfs,
    /// Has XFS write its superblock (xfsprogs).
    XfsIo,
    /// Makes btrfs (btrfs-progs).
    MkfsBtrfs,
    /// Checks and grows btrfs (btrfs-progs).
    Btrfs,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Lvm,
        Self::Blkid,
        Self::Mke2fs,
        Self::E2fsck,
        Self::Resize2fs,
        Self::MkfsXfs,
        Self::XfsRepair,
        Self::XfsGrowfs,
        Self::XfsIo,
        Self::MkfsBtrfs,
        Self::Btrfs,
    ];

    /// What is enough to look at a machine without changing anything.
    pub const LOOK: [Self; 1] = [Self::Lvm];

    /// The name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lvm => "lvm",
            Self::Blkid => "blkid",
            Self::Mke2fs => "mke2fs",
            Self::E2fsck => "e2fsck",
            Self::Resize2fs => "resize2fs",
            Self::MkfsXfs => "mkfs.xfs",
            Self::XfsRepair => "xfs_repair",
            Self::XfsGrowfs => "xfs_growfs",
            Self::XfsIo => "xfs_io",
            Self::MkfsBtrfs => "mkfs.btrfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The Debian package that it comes in, for the message that it is missing.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Lvm => "lvm2",
            Self::Blkid => "util-linux",
            Self::Mke2fs | Self::E2fsck | Self::Resize2fs => "e2fsprogs",
            Self::MkfsXfs | Self::XfsRepair | Self::XfsGrowfs | Self::XfsIo => "xfsprogs",
            Self::MkfsBtrfs | Self::Btrfs => "btrfs-progs",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where programs may lie. `PATH` is not asked: what runs as root must not depend on it.
const FOLDERS: [&str; 6] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// The path of each program.
#[derive(Debug, Clone)]
pub struct Programs(BTreeMap<Program, PathBuf>);

/// Programs that are not there.
#[derive(Debug, thiserror::Error)]
#[error("missing programs: {}", list(.0))]
pub struct MissingPrograms(Vec<Program>);

fn list(missing: &[Program]) -> String {
    let one = |program: &Program| format!("{program} (package {})", program.package());
    missing.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Programs {
    /// Looks for the programs that are `needed` once, so that a driver that lacks one says so when it starts
    /// and not when a volume needs it.
    ///
    /// # Errors
    /// Names all that are missing, with the package each comes in.
    pub fn find(needed: &[Program]) -> Result<Self, MissingPrograms> {
        let found = |program: Program| {
            FOLDERS.iter().map(|dir| Path::new(dir).join(program.name())).find(|p| p.is_file())
        };
        let (mut paths, mut missing) = (BTreeMap::new(), Vec::new());
        for &program in needed {
            match found(program) {
                Some(path) => drop(paths.insert(program, path)),
                None => missing.push(program),
            }
        }
        if missing.is_empty() { Ok(Self(paths)) } else { Err(MissingPrograms(missing)) }
    }

    /// The path of `program`; its bare name would mean that it was never looked for.
    pub fn path(&self, program: Program) -> &Path {
        self.0.get(&program).map_or_else(|| Path::new(program.name()), PathBuf::as_path)
    }
}
