use super::ParseError;

/// Options for mounting a file system, each one allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountOptions(Vec<String>);

/// What a class or a PV may ask for: options that neither weaken what Quarry promises nor let a
/// user reach beyond the volume (mount(8), ext4(5)).
const ALLOWED: [&str; 16] = [
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
    "discard",
    "nodiscard",
    "sync",
    "dirsync",
    "data=ordered",
];

/// The option that carries an SELinux label; the kubelet adds it where a driver allows it.
const SELINUX: &str = "context=";

impl MountOptions {
    /// Takes the options of a volume capability.
    ///
    /// # Errors
    /// An option that is not in the list of those allowed.
    pub fn parse<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let mut taken = Vec::new();
        for option in options.into_iter().flat_map(split) {
            if !ALLOWED.contains(&option) && !is_label(option) {
                // A value may be a secret (CSI specification, "VolumeCapability", mount_flags).
                let name = option.split('=').next().unwrap_or_default();
                return Err(ParseError::new(
                    "mount option",
                    name,
                    format!("is not one of: {}", ALLOWED.join(", ")),
                ));
            }
            taken.push(option.to_owned());
        }
        Ok(Self(taken))
    }

    /// The options one by one.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether the mount is to be read-only.
    pub fn read_only(&self) -> bool {
        self.iter().filter(|option| matches!(*option, "ro" | "rw")).last() == Some("ro")
    }
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
