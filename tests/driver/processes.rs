use std::fs;

/// The numbers of all processes, zombies too.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The numbers of a process's threads.
pub(crate) fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What proc(5) tells of a process in its `status`; nothing of one that is gone.
pub(crate) fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}

/// The process that has started it, or that has inherited it.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    status(pid, "PPid")?.parse().ok()
}

/// Whether it is an lvm that was given no command: one that waits for commands.
pub(crate) fn is_lvm_shell(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.next().is_some_and(|program| program.ends_with(b"/lvm")) && words.next().is_none()
}
