use serde_json::Value;

use super::support::{boot, claimed, json, row, theirs, told};
use crate::driver::{Driver, MIB, Mode, VG, make_group, report, sh};

fn number(row: &Value, field: &str) -> u64 {
    row["content"][field].as_u64().unwrap_or_else(|| panic!("{field}: {row}"))
}

#[test]
fn a_groups_room_is_what_lvm_and_the_driver_say() {
    boot(async || {
        let reserve = format!("{VG}=100MiB");
        let driver = Driver::start_with(&["--volume-group", &reserve]).await;
        let client = driver.client().await;
        claimed(&client, "pvc-a", "a", Mode::Block).await;
        theirs();
        let (available, _) = client.clone().capacity_in(VG).await.unwrap();
        let rows = json(&["vgs", "--volume-group", &reserve]);
        assert_eq!(rows.len(), 1);
        let lvm = report("vgs", "vg_size,vg_free,vg_mda_size,vg_mda_free,vg_uuid", VG).remove(0);
        let told: Vec<String> = ["size_bytes", "free_bytes", "metadata_size_bytes", "metadata_free_bytes"]
            .iter()
            .map(|field| number(&rows[0], field).to_string())
            .chain([rows[0]["uuid"].as_str().unwrap().to_owned()])
            .collect();
        assert_eq!(told.join("|"), lvm);
        assert_eq!(number(&rows[0], "usable_bytes"), available, "as GetCapacity says");
        assert_eq!(number(&rows[0], "free_bytes") - available, 100 * MIB);
        assert_eq!((number(&rows[0], "volumes"), number(&rows[0], "other_logical_volumes")), (1, 1));
        assert_eq!((&rows[0]["used"], &rows[0]["trouble"]), (&true.into(), &Value::Null));
    });
}

#[test]
fn other_groups_are_shown_only_where_they_hold_volumes() {
    boot(async || {
        make_group("other", &lab::disks()[1..]);
        let driver = Driver::start().await;
        let volume = claimed(&driver.client().await, "pvc-a", "a", Mode::Block).await;
        assert_eq!(json(&["vgs", "--volume-group", VG]).len(), 1);
        assert_eq!(json(&["vgs"]).len(), 2, "without a configuration all groups count");
        // As when a group is renamed, or a name is taken out of the configuration.
        let table = told(&["vgs", "--volume-group", "other"]);
        assert!(row(&table, VG).contains(&"healthy, and not one of those to use"), "{table}");
        assert_eq!(row(&table, VG)[5], "0 B", "nothing is made in it: {table}");
        let volumes = told(&["volumes", "--volume-group", "other"]);
        assert!(volumes.contains(&volume.lv()), "{volumes}");
        volume.delete().await.unwrap();
        assert_eq!(json(&["vgs", "--volume-group", "other"]).len(), 1);
    });
}

#[test]
fn the_drivers_file_is_read_where_it_usually_is() {
    boot(async || {
        std::fs::create_dir_all("/etc/quarry").unwrap();
        let text = format!("[[volume-groups]]\nname = \"{VG}\"\nreserve = \"64MiB\"\n");
        std::fs::write("/etc/quarry/quarry.toml", text).unwrap();
        make_group("other", &lab::disks()[1..]);
        let table = told(&["vgs"]);
        assert_eq!(table.lines().count(), 2, "{table}");
        assert_eq!(row(&table, VG)[4], "64 MiB");
        sh(&format!("vgexport -q {VG}"));
        assert!(told(&["vgs"]).contains("it is exported (vgimport brings it back)"));
    });
}
