use super::{FsType, ParseError};

/// Options for mounting a file system, each one allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountOptions(Vec<String>);

/// What a class or a PV may ask for, whatever the file system (mount(8)): options that neither weaken what
/// Quarry promises nor let a user reach beyond the volume.
const COMMON: [&str; 13] = [
    "ro",
    "rw",
    "noatime",
    "atime",
    "relatime",
    "strictatime",
    "lazytime",
    "nodiratime",
    "nodev",
    "noexec",
    "nosuid",
    "sync",
    "dirsync",
];

/// The option that carries an SELinux label; the kubelet adds it where a driver allows it.
const SELINUX: &str = "context=";

impl FsType {
    /// What may be asked for beside what every file system may be mounted with. What is not here would lose
    /// data that was answered for (`nobarrier`), show what was on the disk before (`data=writeback`), hide
    /// damage (`nodatasum`), or reach another device or another file system (`logdev`, `device`, `subvol`).
    pub const fn own_mount_options(self) -> &'static [&'static str] {
        match self {
            // ext4(5).
            Self::Ext4 => &["discard", "nodiscard", "data=ordered", "data=journal"],
            // xfs(5).
            Self::Xfs => &[
                "discard",
                "nodiscard",
                "largeio",
                "nolargeio",
                "logbsize=64k",
                "logbsize=128k",
                "logbsize=256k",
            ],
            // btrfs(5).
            Self::Btrfs => &[
                "discard",
                "discard=sync",
                "discard=async",
                "nodiscard",
                "compress=zlib",
                "compress=lzo",
                "compress=zstd",
                "compress=no",
                "autodefrag",
                "noautodefrag",
                "ssd",
                "nossd",
            ],
        }
    }

    /// All that may be asked for, but for SELinux labels.
    pub fn mount_options(self) -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(self.own_mount_options().iter().copied())
    }
}

impl MountOptions {
    /// Takes the options of a volume capability. Those that only some file systems have are looked at again
    /// once it is known which one it is ([`Self::check`]).
    ///
    /// # Errors
    /// An option that no file system may be mounted with.
    pub fn parse<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let mut taken = Vec::new();
        for option in options.into_iter().flat_map(split) {
            if !is_label(option) && !FsType::ALL.into_iter().any(|fs| is_allowed(fs, option)) {
                return Err(unknown(option, FsType::ALL.into_iter().flat_map(FsType::mount_options)));
            }
            taken.push(option.to_owned());
        }
        Ok(Self(taken))
    }

    /// Whether a file system of that type may be mounted so.
    ///
    /// # Errors
    /// An option that it may not have.
    pub fn check(&self, fs: FsType) -> Result<(), ParseError> {
        match self.iter().find(|option| !is_label(option) && !is_allowed(fs, option)) {
            Some(option) => Err(unknown(option, fs.mount_options())),
            None => Ok(()),
        }
    }

    /// The options one by one.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether they ask for a read-only mount ([`VolumeCapability::is_read_only`] is the rule on that).
    ///
    /// [`VolumeCapability::is_read_only`]: super::VolumeCapability::is_read_only
    pub fn read_only(&self) -> bool {
        self.iter().filter(|option| matches!(*option, "ro" | "rw")).last() == Some("ro")
    }
}

fn is_allowed(fs: FsType, option: &str) -> bool {
    fs.mount_options().any(|allowed| allowed == option)
}

/// Only the option's name is told: a value may be a secret (CSI specification, "VolumeCapability", mount_flags).
fn unknown(option: &str, allowed: impl Iterator<Item = &'static str>) -> ParseError {
    let name = option.split('=').next().unwrap_or_default();
    let mut words: Vec<&str> = Vec::new();
    for word in allowed {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    ParseError::new("mount option", name, format!("is not one of: {}", words.join(", ")))
}

/// One entry may hold several options, as in fstab; an SELinux label may hold commas itself.
fn split(entry: &str) -> Vec<&str> {
    if entry.starts_with(SELINUX) {
        vec![entry]
    } else {
        entry.split(',').filter(|o| !o.is_empty()).collect()
    }
}

fn is_label(option: &str) -> bool {
    option.strip_prefix(SELINUX).is_some_and(|label| {
        let label = label.trim_matches('"');
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b":_,.-".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_options_pass() {
        assert!(
            MountOptions::parse([
                "noatime,nodev",
                "ro",
                "context=\"system_u:object_r:container_file_t:s0:c1,c2\""
            ])
            .is_ok()
        );
        for bad in ["bind", "remount", "loop", "journal_dev=8:0", "context=a b", "-o", "x=\u{0}"] {
            assert!(MountOptions::parse([bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_file_system_has_options_of_its_own() {
        for (option, fits) in [
            ("noatime", &[FsType::Ext4, FsType::Xfs, FsType::Btrfs][..]),
            ("context=a:b:c:d", &FsType::ALL),
            ("data=journal", &[FsType::Ext4]),
            ("logbsize=256k", &[FsType::Xfs]),
            ("compress=zstd", &[FsType::Btrfs]),
        ] {
            let options = MountOptions::parse([option]).unwrap();
            for fs in FsType::ALL {
                assert_eq!(options.check(fs).is_ok(), fits.contains(&fs), "{option} for {fs}");
            }
        }
        let error = MountOptions::parse(["data=journal"]).unwrap().check(FsType::Xfs).unwrap_err();
        assert!(error.to_string().contains("largeio") && !error.to_string().contains("journal"), "{error}");
    }

    #[test]
    fn values_of_options_are_never_told() {
        let error = MountOptions::parse(["password=hunter2"]).unwrap_err().to_string();
        assert!(error.contains("password") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_last_of_ro_and_rw_counts() {
        assert!(MountOptions::parse(["rw", "ro"]).unwrap().read_only());
        assert!(!MountOptions::parse(["ro,rw"]).unwrap().read_only());
    }
}
