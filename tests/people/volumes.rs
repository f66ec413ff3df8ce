use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::support::{boot, claimed, everything, json, quarry, row, theirs, told};
use crate::driver::{Driver, Mode, SIZE, VG, Volume, lock_group, sh};

/// The name of a claim's PersistentVolume, and a pod.
const PV: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
const POD: &str = "0f1e2d3c-5d0a-4a55-9c8c-1d6f3b3c2f11";

fn in_pod(pv: &str) -> PathBuf {
    Path::new("/var/lib/kubelet/pods").join(POD).join("volumes/kubernetes.io~csi").join(pv).join("mount")
}

/// A claim's volume in a pod, a raw block volume that is published elsewhere, and one that is not used.
async fn three(driver: &Driver) -> [Volume; 3] {
    let client = driver.client().await;
    let mut pods = claimed(&client, PV, "db-0", Mode::Ext4).await;
    pods.staging = "/var/lib/kubelet/plugins/kubernetes.io/csi/lvm.csi.quarry/a1/globalmount".into();
    pods.target = in_pod(PV);
    for folder in [&pods.staging, &pods.target] {
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    }
    std::fs::create_dir_all(&pods.staging).unwrap();
    pods.start().await;
    std::fs::write(pods.target.join("data"), vec![1; 1 << 20]).unwrap();
    sh("sync");
    let raw = Volume::in_use(&client, "raw", Mode::Block).await;
    let unused = Volume::create(&client, "unused", Mode::Ext4).await;
    unused.prepared().await;
    [pods, raw, unused]
}

#[test]
fn a_table_tells_whose_volumes_are_and_where_they_are_published() {
    boot(async || {
        let driver = Driver::start().await;
        let [pods, raw, unused] = three(&driver).await;
        theirs();
        let before = everything();
        let table = told(&["volumes", "--volume-group", VG]);
        assert_eq!(table.lines().count(), 4, "the heading and three volumes: {table}");
        let cells = row(&table, "prod/db-0");
        let used = cells[3].to_owned();
        assert!(used.ends_with(" MiB"), "{table}");
        assert_eq!(
            cells,
            ["prod/db-0", &pods.lv(), "16 MiB", &used, "linear", "ext4", "used", &format!("pod {POD}")]
        );
        let line = |volume: &Volume| {
            let line = table.lines().find(|line| line.contains(&volume.lv())).unwrap();
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let target = raw.target.to_str().unwrap();
        assert_eq!(line(&raw), ["-", &raw.lv(), "16 MiB", "-", "linear", "block", "used", target]);
        assert_eq!(line(&unused), ["-", &unused.lv(), "16 MiB", "-", "linear", "ext4", "fresh", "-"]);
        assert_eq!(told(&["volumes"]), table, "without a configuration all groups count");
        assert_eq!(everything(), before, "a look changes nothing");
        driver.kill();
        assert_eq!(told(&["volumes"]), table, "no driver is needed");
        assert_eq!(everything(), before);
        pods.device();
    });
}

#[test]
fn json_has_all_of_it() {
    boot(async || {
        let driver = Driver::start().await;
        let [pods, raw, unused] = three(&driver).await;
        let rows = json(&["volumes"]);
        let of = |volume: &Volume| rows.iter().find(|row| row["handle"] == volume.id.as_str()).unwrap();
        let claimed = of(&pods);
        assert_eq!(claimed["claim"], serde_json::json!({"namespace": "prod", "name": "db-0"}));
        assert_eq!(
            (&claimed["name"], &claimed["mode"], &claimed["state"]),
            (&PV.into(), &"ext4".into(), &"used".into())
        );
        assert_eq!((&claimed["size_bytes"], &claimed["layout"]), (&SIZE.into(), &"linear".into()));
        let files = nix::sys::statvfs::statvfs(&pods.target).unwrap();
        let used = (files.blocks() - files.blocks_free()) * files.fragment_size();
        assert_eq!(claimed["used_bytes"], used);
        let mut places = claimed["places"].as_array().unwrap().clone();
        places.sort_by_key(|place| place["staging"].as_bool());
        assert_eq!(places.len(), 2, "{places:?}");
        assert_eq!(
            (&places[0]["pod"], &places[0]["path"]),
            (&POD.into(), &pods.target.to_str().unwrap().into())
        );
        assert_eq!((&places[1]["staging"], &places[1]["pod"]), (&true.into(), &serde_json::Value::Null));
        assert_eq!((&of(&raw)["mode"], &of(&raw)["used_bytes"]), (&"block".into(), &serde_json::Value::Null));
        assert_eq!(of(&raw)["places"][0]["path"], raw.target.to_str().unwrap());
        assert_eq!(
            (&of(&unused)["state"], &of(&unused)["places"]),
            (&"fresh".into(), &serde_json::json!([]))
        );
    });
}

#[test]
fn nobody_s_lock_and_no_hanging_command_is_waited_for() {
    boot(async || {
        let driver = Driver::start().await;
        let [pods, ..] = three(&driver).await;
        driver.kill();
        let _held = lock_group();
        for command in ["volumes", "vgs", "check"] {
            let begun = Instant::now();
            let shown = quarry(&[command]);
            assert_eq!(shown.code, 0, "{shown:?}");
            assert!(begun.elapsed() < Duration::from_secs(60), "{command} has waited for the lock");
        }
        assert!(told(&["volumes"]).contains(&pods.lv()));
    });
}

#[test]
fn a_volume_with_broken_tags_is_shown_and_a_group_that_cannot_be_read_is_told() {
    boot(async || {
        let driver = Driver::start().await;
        let [.., unused] = three(&driver).await;
        unused.retag("q.v=1", "q.v=9");
        let table = told(&["volumes"]);
        let line = table.lines().find(|line| line.contains(&unused.lv())).unwrap();
        assert!(line.contains("unreadable"), "{table}");
        driver.kill();
        sh(&format!(
            "umount -A /dev/{VG}/* || true; umount /var/lib/kubelet/raw-target; vgchange -an -q {VG}; vgexport -q {VG}"
        ));
        let shown = quarry(&["volumes", "--volume-group", VG]);
        assert_eq!(shown.code, 1, "{shown:?}");
        assert!(
            shown.errors.contains("not all volume groups can be read")
                && shown.errors.contains("it is exported"),
            "{shown:?}"
        );
    });
}

#[test]
fn a_volume_is_found_where_it_is_published_whatever_its_file_system() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        for mode in Mode::FILE_SYSTEMS {
            let volume = claimed(&client, PV, "db-0", mode).await;
            volume.start().await;
            let table = told(&["volumes", "--volume-group", VG]);
            let places = format!("{}, {}", volume.staging.display(), volume.target.display());
            assert_eq!(row(&table, "prod/db-0")[5..], [mode.word(), "used", &places], "{table}");
            volume.end().await;
            volume.delete().await.unwrap();
        }
    });
}
