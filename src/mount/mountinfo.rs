use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::types::DeviceNumber;

/// One line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount's number, unique among those that exist.
    pub id: u64,
    /// The number of the mount that it is mounted on.
    pub parent: u64,
    /// The device number of the file system. btrfs shows one of its own, not a disk's.
    pub device: DeviceNumber,
    /// What of the file system is mounted: `/`, or the path inside it that was bound.
    pub root: PathBuf,
    /// The mount point.
    pub target: PathBuf,
    /// Options of this mount, as in `ro,noatime`.
    pub options: OsString,
    /// The number of the peer group that changes propagate in; `None` if the mount is not shared.
    pub shared: Option<u64>,
    /// The kernel's name of the file system.
    pub fs_type: OsString,
    /// What was given as its source: often a path, and never an identity.
    pub source: OsString,
    /// Options of the file system itself, which all its mounts share.
    pub super_options: OsString,
}

impl Mount {
    /// Whether nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        has(&self.options, "ro") || has(&self.super_options, "ro")
    }

    /// Whether the file system takes nothing although it was mounted for writing: the kernel has seen an error in it.
    pub fn is_forced_read_only(&self) -> bool {
        has(&self.super_options, "ro") && !has(&self.options, "ro")
    }

    /// Whether this mount has that option, whatever its file system has.
    pub fn has_option(&self, option: &str) -> bool {
        has(&self.options, option)
    }
}

fn has(options: &OsStr, wanted: &str) -> bool {
    options.as_bytes().split(|byte| *byte == b',').any(|option| option == wanted.as_bytes())
}

/// Reads the whole table. A line that makes no sense is left out with a warning: it must not hide the
/// others.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .filter_map(|line| {
            let mount = parse_line(line);
            if mount.is_none() {
                tracing::warn!(line = %line.escape_ascii(), "a line of mountinfo makes no sense: left out");
            }
            mount
        })
        .collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 master:2 - ext3 /dev/root rw,errors=continue`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    // Not by white space: a field may be empty, as the source of some file systems is.
    let mut fields = line.split(|byte| *byte == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let root = PathBuf::from(unescape(fields.next()?));
    let target = PathBuf::from(unescape(fields.next()?));
    let options = unescape(fields.next()?);
    let mut shared = None;
    loop {
        match fields.next()? {
            b"-" => break,
            tag => shared = shared.or_else(|| tag.strip_prefix(b"shared:").and_then(number)),
        }
    }
    let fs_type = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    let super_options = unescape(fields.next()?);
    Some(Mount { id, parent, device, root, target, options, shared, fs_type, source, super_options })
}

fn number(field: &[u8]) -> Option<u64> {
    str::from_utf8(field).ok()?.parse().ok()
}

/// Takes back the kernel's `\040` for a blank and the like (seq_path): a backslash and three octal
/// digits are one byte, all else is itself.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        if let Some((byte, after)) = escaped(rest) {
            bytes.push(byte);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes)
}

fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', rest @ ..] = text else {
        return None;
    };
    Some(((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel does to a path (seq_path with " \t\n\\#").
    fn escape(bytes: &[u8]) -> Vec<u8> {
        let one = |byte: &u8| match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}").into_bytes(),
            other => vec![*other],
        };
        bytes.iter().flat_map(one).collect()
    }

    #[test]
    fn a_line_is_read_whole() {
        let text = b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - ext4 /dev/root rw,errors=x\n";
        let [mount] = &parse(text)[..] else { panic!() };
        assert_eq!((mount.id, mount.parent, mount.device), (36, 35, "98:0".parse().unwrap()));
        assert_eq!((mount.root.as_os_str(), mount.target.as_os_str()), ("/mnt1".as_ref(), "/mnt 2".as_ref()));
        assert_eq!((mount.shared, mount.is_read_only()), (Some(7), false));
        assert_eq!((&mount.fs_type[..], &mount.source[..]), ("ext4".as_ref(), "/dev/root".as_ref()));
        assert!(mount.has_option("noatime") && !mount.has_option("no"));
    }

    #[test]
    fn what_the_kernel_has_made_read_only_is_told_from_what_was_mounted_so() {
        let forced = |own, of_all| {
            parse(format!("1 2 0:5 / /x {own} - btrfs /dev/x {of_all}").as_bytes())[0].is_forced_read_only()
        };
        assert!(forced("rw,relatime", "ro,space_cache=v2"));
        assert!(!forced("rw", "rw") && !forced("ro", "rw") && !forced("ro,relatime", "ro"));
    }

    #[test]
    fn an_empty_source_is_no_reason_to_lose_a_line() {
        assert_eq!(parse(b"1 2 0:5 / /x ro - tmpfs  rw\n").len(), 1);
    }

    #[test]
    fn a_bad_line_does_not_hide_the_others() {
        let good = "1 2 0:5 / /x ro - tmpfs t rw\n";
        for bad in ["", "1 2 0:5 / /y ro", "1 2 five / /y ro - tmpfs t rw", "1 2 0:5 / /y ro shared:1 tmpfs"]
        {
            assert_eq!(parse(format!("{good}{bad}\n{good}").as_bytes()).len(), 2, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_path_survives(
            target in proptest::collection::vec(1_u8..=255, 1..40),
            root in proptest::collection::vec(1_u8..=255, 1..40),
        ) {
            let mut line = b"1 2 0:5 ".to_vec();
            line.extend(escape(&root));
            line.push(b' ');
            line.extend(escape(&target));
            line.extend(b" rw shared:3 - ext4 /dev/x rw");
            let mounts = parse(&line);
            prop_assert_eq!(mounts.len(), 1);
            prop_assert_eq!(mounts[0].target.as_os_str().as_bytes(), &target[..]);
            prop_assert_eq!(mounts[0].root.as_os_str().as_bytes(), &root[..]);
        }

        #[test]
        fn nothing_makes_it_fail(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&text);
        }
    }
}
