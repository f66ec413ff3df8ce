//! The volume group that both sides work in.

use std::io::Write as _;
use std::process::{Command, Stdio};

use quarry::types::{Claim, FsType, VolumeMode, VolumeState, VolumeTags};

use crate::driver::{VG, command, report};

/// What the driver leaves free of a metadata area when it makes volumes, in bytes.
const KEPT: u64 = 32 << 10;

/// Makes the group anew on the machine's disk, with these options.
pub(super) fn make(options: &[&str]) {
    let disk = lab::disks().remove(0);
    if !report("vgs", "vg_name", "--all").is_empty() {
        command("vgremove", &["-q", "-y", "-f", VG]);
    }
    command("vgcreate", &[options, &["-q", "-y", VG, disk.to_str().unwrap()]].concat());
}

/// The name of the volume number so and so.
pub(super) fn name(number: usize) -> String {
    format!("pvc-00000000-0000-4000-8000-{number:012}")
}

/// Fills the group with so many LVs, as volumes of the driver's that are in use: of one extent each, since nobody
/// writes to them. One lvm makes them all, without the backups of a stock command.
pub(super) fn fill(lvs: usize) {
    let mut lvm = Command::new("lvm").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut commands = lvm.stdin.take().unwrap();
    for number in 0..lvs {
        // Apart from those that the samples make.
        let name = name(1_000_000 + number);
        let tags: String = tags(&name).iter().map(|tag| format!(" --addtag={tag}")).collect();
        writeln!(commands, "lvcreate -q -y -An -Wn -Zn -l1 -n {name}{tags} {VG}").unwrap();
    }
    drop(commands);
    assert!(lvm.wait().unwrap().success());
    assert_eq!(report("lvs", "lv_name", VG).len(), lvs);
}

fn tags(name: &str) -> Vec<String> {
    let claim = Claim { namespace: "production".to_owned(), name: "data-database-0".to_owned() };
    let tags = VolumeTags {
        state: VolumeState::Used,
        name: name.parse().unwrap(),
        mode: VolumeMode::Filesystem(FsType::Ext4),
        claim: Some(claim),
        cluster: Some("6e1f3a52-9f0c-4d53-8a43-5d7a2c1b9e10".parse().unwrap()),
    };
    tags.encode()
}

/// What is free in the metadata area, in bytes.
pub(super) fn metadata_free() -> u64 {
    report("vgs", "vg_mda_free", VG)[0].parse().unwrap()
}

/// What so many LVs take of the metadata of a group in which `empty` was free before, and how many fit.
pub(super) fn metadata(empty: u64, lvs: u64) -> String {
    let each = (empty - metadata_free()) / lvs;
    let (all, ours) = (empty / each, (empty - KEPT) / each);
    format!(
        "metadata: {each} bytes an LV; a default VG is full at {all} LVs, and the driver makes none above {ours}"
    )
}
