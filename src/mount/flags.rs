use nix::mount::MsFlags;

use super::Mount;
use crate::types::MountOptions;

/// What mount(2) takes: flags, and the rest as text for the file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) flags: MsFlags,
    pub(super) data: String,
}

/// Options that are flags: what each sets, after what it clears (mount(8), mount(2)). The last one wins.
const FLAGS: [(&str, MsFlags, MsFlags); 13] = [
    ("ro", MsFlags::MS_RDONLY, MsFlags::empty()),
    ("rw", MsFlags::empty(), MsFlags::MS_RDONLY),
    ("noatime", MsFlags::MS_NOATIME, ATIME),
    ("atime", MsFlags::empty(), ATIME),
    ("relatime", MsFlags::MS_RELATIME, ATIME),
    ("strictatime", MsFlags::MS_STRICTATIME, ATIME),
    ("nodiratime", MsFlags::MS_NODIRATIME, MsFlags::empty()),
    ("lazytime", MsFlags::MS_LAZYTIME, MsFlags::empty()),
    ("nodev", MsFlags::MS_NODEV, MsFlags::empty()),
    ("noexec", MsFlags::MS_NOEXEC, MsFlags::empty()),
    ("nosuid", MsFlags::MS_NOSUID, MsFlags::empty()),
    ("sync", MsFlags::MS_SYNCHRONOUS, MsFlags::empty()),
    ("dirsync", MsFlags::MS_DIRSYNC, MsFlags::empty()),
];

const ATIME: MsFlags = MsFlags::MS_NOATIME.union(MsFlags::MS_RELATIME).union(MsFlags::MS_STRICTATIME);

/// The options of a mount: the user's, and then those that count whatever the user asks for.
pub(super) fn arguments(always: &[&str], options: &MountOptions) -> Arguments {
    let mut flags = MsFlags::empty();
    let mut data: Vec<String> = Vec::new();
    for option in options.iter().chain(always.iter().copied()) {
        match FLAGS.iter().find(|(name, ..)| *name == option) {
            Some((_, sets, clears)) => flags = flags.difference(*clears).union(*sets),
            None => data.push(quoted(option)),
        }
    }
    Arguments { flags, data: data.join(",") }
}

/// A value with commas in it, as an SELinux label has, reaches the kernel whole only between quotes.
fn quoted(option: &str) -> String {
    match option.split_once('=') {
        Some((name, value)) if value.contains(',') && !value.starts_with('"') => {
            format!("{name}=\"{value}\"")
        }
        _ => option.to_owned(),
    }
}

/// The flags that a mount has: to change one of a bind mount, all the others must be given again, or
/// they are lost (mount(2), "Remounting an existing mount").
pub(super) fn of_mount(mount: &Mount) -> MsFlags {
    let kept = ["ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime"];
    let has = |(name, ..): &&(&str, MsFlags, MsFlags)| kept.contains(name) && mount.has_option(name);
    let mut flags = FLAGS.iter().filter(has).fold(MsFlags::empty(), |flags, (_, sets, _)| flags | *sets);
    if !flags.intersects(ATIME) {
        // Neither is shown for strictatime, and relatime is what the kernel takes where nothing is said.
        flags |= MsFlags::MS_STRICTATIME;
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(always: &[&str], options: &[&str]) -> Arguments {
        arguments(always, &MountOptions::parse(options.iter().copied()).unwrap())
    }

    #[test]
    fn flags_and_text_are_told_apart() {
        let found = of(&["nouuid"], &["noatime,nodev", "discard", "ro"]);
        assert_eq!(found.flags, MsFlags::MS_NOATIME | MsFlags::MS_NODEV | MsFlags::MS_RDONLY);
        assert_eq!(found.data, "discard,nouuid");
    }

    #[test]
    fn the_last_of_opposites_wins() {
        assert_eq!(of(&[], &["ro", "noatime", "rw", "strictatime"]).flags, MsFlags::MS_STRICTATIME);
        assert_eq!(of(&["ro"], &["noatime", "rw"]).flags, MsFlags::MS_NOATIME | MsFlags::MS_RDONLY);
    }

    #[test]
    fn a_label_with_commas_stays_whole() {
        assert_eq!(of(&[], &["context=a:b:s0:c1,c2"]).data, "context=\"a:b:s0:c1,c2\"");
        assert_eq!(of(&[], &["context=\"a:b:s0:c1,c2\""]).data, "context=\"a:b:s0:c1,c2\"");
    }

    #[test]
    fn every_option_that_a_user_may_give_goes_one_way_only() {
        for option in ["ro", "rw", "atime", "lazytime", "dirsync", "sync", "nodiratime", "noexec", "nosuid"] {
            assert_eq!(of(&[], &[option]).data, "", "{option}");
        }
        assert_eq!(of(&[], &["nodiscard", "data=ordered"]).data, "nodiscard,data=ordered");
    }

    #[test]
    fn a_remount_keeps_what_a_mount_has() {
        let line = b"1 2 0:5 / /x rw,nosuid,relatime - ext4 /dev/x ro\n";
        let mount = &super::super::mountinfo::parse(line)[0];
        assert_eq!(of_mount(mount), MsFlags::MS_NOSUID | MsFlags::MS_RELATIME);
    }
}
