use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

/// Runs a program of the host, which must succeed, and gives what it printed.
pub(crate) fn command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a line of shell, which must succeed, and gives what it printed.
pub(crate) fn sh(line: &str) -> String {
    command("/bin/bash", &["-e", "-o", "pipefail", "-c", line])
}

/// Makes a volume group of these disks.
pub(crate) fn make_group(name: &str, disks: &[PathBuf]) {
    let disks: Vec<&str> = disks.iter().map(|disk| disk.to_str().unwrap()).collect();
    command("vgcreate", &[&["-q", "-y", name], disks.as_slice()].concat());
}

/// What a report command of LVM prints, one row a line, fields trimmed: `report("lvs", "lv_name", "vg0")`.
pub(crate) fn report(program: &str, fields: &str, what: &str) -> Vec<String> {
    let options = ["--noheadings", "--nosuffix", "--units", "b", "--separator", "|", "-o", fields, what];
    command(program, &options)
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Takes the lock of the group `vg0` as another lvm would, until the file is dropped.
pub(crate) fn lock_group() -> File {
    std::fs::create_dir_all("/run/lock/lvm").unwrap();
    let file = File::options().write(true).create(true).truncate(false).open("/run/lock/lvm/V_vg0").unwrap();
    file.try_lock().unwrap();
    file
}

/// Whether the process waits for a lock on a file.
pub(crate) fn waits_for_lock(pid: u32) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let pid = pid.to_string();
    locks.lines().any(|line| line.contains("->") && line.split_whitespace().any(|word| word == pid))
}
