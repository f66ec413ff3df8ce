//! What the names of volume groups and of logical volumes have in common.

/// The longest name that device mapper takes, in bytes (DM_NAME_LEN less the closing zero).
pub(super) const LONGEST_DM_NAME: usize = 127;

/// The longest name that Quarry gives an LV, hyphens counted twice: `snap-` and a UUID.
pub(super) const LONGEST_MANGLED: usize = 46;

/// What LVM allows in names (lvm(8), "VALID NAMES").
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'_' | b'.' | b'-')
}

/// The length of a name in a device-mapper name: LVM doubles hyphens there.
pub(super) fn mangled_len(name: &str) -> usize {
    name.len() + name.bytes().filter(|byte| *byte == b'-').count()
}
