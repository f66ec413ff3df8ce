//! What these tests share.

use std::collections::HashMap;
use std::process::Command;

use quarry::proto::csi::v1 as csi;
use serde_json::Value;

use crate::driver::{self, Client, MIB, Mode, VG, Volume, command, make_group};

/// Boots a machine with two disks: the group [`VG`] on the first, nothing on the second.
pub(super) fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("512M").disk("512M").boot(|| {
        make_group(VG, &lab::disks()[..1]);
        driver::run(body());
    });
}

/// What a command of quarry's printed and ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) code: i32,
    pub(super) text: String,
    pub(super) errors: String,
}

/// Runs `quarry` as a person does.
pub(super) fn quarry(arguments: &[&str]) -> Shown {
    let output = Command::new(env!("CARGO_BIN_EXE_quarry")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Shown { code: output.status.code().unwrap(), text: text(output.stdout), errors: text(output.stderr) }
}

/// What it printed, which was all that there is.
pub(super) fn told(arguments: &[&str]) -> String {
    let shown = quarry(arguments);
    assert_eq!((shown.code, shown.errors.as_str()), (0, ""), "{shown:?}");
    shown.text
}

/// The same as JSON.
pub(super) fn json(arguments: &[&str]) -> Vec<Value> {
    serde_json::from_str(&told(&[arguments, &["--json"]].concat())).unwrap()
}

/// The cells of a table's row that begins so. Columns are two blanks apart at least.
pub(super) fn row<'a>(table: &'a str, start: &str) -> Vec<&'a str> {
    let line =
        table.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {table}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// Makes a volume as csi-provisioner does, for a claim in the namespace `prod`.
pub(super) async fn claimed(client: &Client, name: &str, claim: &str, mode: Mode) -> Volume {
    let parameters = [
        ("csi.storage.k8s.io/pvc/namespace", "prod"),
        ("csi.storage.k8s.io/pvc/name", claim),
        ("csi.storage.k8s.io/pv/name", name),
    ];
    let request = csi::CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(csi::CapacityRange {
            required_bytes: mode.size().try_into().unwrap(),
            limit_bytes: 0,
        }),
        volume_capabilities: vec![mode.capability()],
        parameters: parameters
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .collect::<HashMap<_, _>>(),
        ..Default::default()
    };
    client.clone().create_with(request).await.unwrap();
    Volume::existing(client, name, mode)
}

/// Somebody else's LV in the same group.
pub(super) fn theirs() {
    command("lvcreate", &["-q", "-y", "-an", "-Zn", "-n", "theirs", "-L", &format!("{}b", 8 * MIB), VG]);
}

/// All that LVM knows, and all that is mounted: what must be the same after a look.
pub(super) fn everything() -> String {
    let lvm = command("lvs", &["-a", "--nolocking", "--noheadings", "-o", "vg_all,lv_all"]);
    lvm + &std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}
