//! The values are true.

use std::net::SocketAddr;

use super::scrape::Scrape;
use crate::driver::{
    self, Client, Driver, MIB, Mode, SIZE, VG, Volume, lock_group, make_group, report, sh, until,
};

const ADDRESS: &str = "127.0.0.1:9809";

async fn scrape() -> Scrape {
    Scrape::of(ADDRESS.parse::<SocketAddr>().unwrap()).await
}

/// Boots a machine with a driver that leaves 100 MiB of [`VG`] free.
fn boot(body: impl AsyncFnOnce(Driver, Client)) {
    lab::Machine::new().disk("512M").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let group = format!("{VG}=100MiB");
            let driver = Driver::start_with(&["--volume-group", &group, "--health-address", ADDRESS]).await;
            let client = driver.client().await;
            body(driver, client).await;
        });
    });
}

#[test]
fn groups_and_volumes_are_as_lvm_and_getcapacity_say() {
    boot(async |driver, mut client| {
        let used = Volume::in_use(&client, "pvc-used", Mode::Ext4).await;
        let fresh = Volume::create(&client, "pvc-fresh", Mode::Block).await;
        fresh.prepared().await;
        until("the view has seen it", async || {
            scrape().await.value("quarry_volumes", &[("state", "fresh")]) == 1.0
        })
        .await;
        let found = scrape().await;
        let lvm = report("vgs", "vg_size,vg_free,vg_mda_size,vg_mda_free", VG).remove(0);
        let names = [
            "quarry_vg_size_bytes",
            "quarry_vg_free_bytes",
            "quarry_vg_metadata_size_bytes",
            "quarry_vg_metadata_free_bytes",
        ];
        for (name, bytes) in names.iter().zip(lvm.split('|')) {
            assert_eq!(found.value(name, &[("vg", VG)]), bytes.parse::<f64>().unwrap(), "{name}");
        }
        let uuid = report("vgs", "vg_uuid", VG).remove(0);
        assert_eq!(
            found.value("quarry_vg_reserve_bytes", &[("vg", VG), ("uuid", &uuid)]),
            f64::from(100 << 20)
        );
        let (available, _) = client.capacity_in(VG).await.unwrap();
        assert_eq!(found.value("quarry_vg_usable_bytes", &[]), available as f64);
        assert_eq!(found.value("quarry_vg_healthy", &[]), 1.0);
        for (state, count) in [("used", 1.0), ("fresh", 1.0), ("blank", 0.0), ("growing", 0.0)] {
            assert_eq!(found.value("quarry_volumes", &[("state", state), ("vg", VG)]), count, "{state}");
        }
        used.end().await;
        fresh.delete().await.unwrap();
        used.delete().await.unwrap();
        let found = scrape().await;
        assert_eq!(found.value("quarry_volumes", &[("state", "used")]), 0.0);
        sh(&format!("vgexport -q {VG}"));
        assert_eq!(client.capacity_in(VG).await.unwrap().0, 0);
        let found = scrape().await;
        assert_eq!(
            (found.value("quarry_vg_healthy", &[]), found.value("quarry_vg_usable_bytes", &[])),
            (0.0, 0.0)
        );
        assert!(driver.stop().success());
    });
}

#[test]
fn calls_and_lvm_s_commands_are_counted_as_they_end() {
    boot(async |_driver, mut client| {
        for name in ["pvc-a", "pvc-b", "pvc-c"] {
            client.create(name, SIZE, Mode::Block).await.unwrap();
        }
        client.create("pvc-huge", 900 * MIB, Mode::Block).await.unwrap_err();
        client.delete("no-such-id").await.unwrap();
        let found = scrape().await;
        let create = ("rpc", "CreateVolume");
        assert_eq!(found.value("quarry_rpcs_total", &[create, ("code", "OK")]), 3.0);
        assert_eq!(found.value("quarry_rpcs_total", &[create, ("code", "RESOURCE_EXHAUSTED")]), 1.0);
        assert_eq!(found.value("quarry_rpcs_total", &[("rpc", "DeleteVolume"), ("code", "OK")]), 1.0);
        assert_eq!(found.value("quarry_rpc_duration_seconds_count", &[create]), 4.0);
        let lvcreate = ("command", "lvcreate");
        assert_eq!(found.value("quarry_lvm_command_duration_seconds_count", &[lvcreate]), 3.0);
        let spent = found.value("quarry_lvm_command_duration_seconds_sum", &[lvcreate]);
        assert!(spent > 0.0 && spent < found.value("quarry_rpc_duration_seconds_sum", &[create]), "{spent}");
        assert_eq!(found.value("quarry_lvm_command_failures_total", &[lvcreate]), 0.0);
        assert!(found.value("quarry_lvm_command_duration_seconds_count", &[("command", "pvs")]) >= 1.0);
        assert_eq!(
            found.value(
                "quarry_build_info",
                &[("version", env!("CARGO_PKG_VERSION")), ("role", "standalone")]
            ),
            1.0
        );
    });
}

#[test]
fn those_who_wait_for_their_turn_are_counted() {
    boot(async |driver, client| {
        let waiting = async || scrape().await.value("quarry_vg_writers_waiting", &[("vg", VG)]);
        assert_eq!(waiting().await, 0.0);
        let lock = lock_group();
        let creates: Vec<_> = (0..4)
            .map(|number| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    client.create_in(VG, &format!("pvc-{number}"), SIZE, Mode::Block).await
                })
            })
            .collect();
        driver.log().soon(&["running", "lvcreate"]).await;
        until("one has its turn and three wait", async || waiting().await == 3.0).await;
        drop(lock);
        for create in creates {
            create.await.unwrap().unwrap();
        }
        until("nobody waits", async || waiting().await == 0.0).await;
    });
}
