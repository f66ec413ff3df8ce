use tonic::Code;

use crate::driver::{self, Driver, MIB, Mode, VG, command, lock_group, lv_of, make_group, refused, report};
use crate::metrics::Scrape;

fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("1G").disk("1G").boot(|| {
        make_group(VG, &lab::disks()[..1]);
        driver::run(body());
    });
}

#[test]
fn the_reserve_is_kept_from_creation_and_given_to_growth() {
    boot(async || {
        let free: u64 = report("vgs", "vg_free", VG)[0].parse().unwrap();
        let driver = Driver::start_with(&["--volume-group", &format!("{VG}=100MiB")]).await;
        let mut client = driver.client().await;
        assert_eq!(client.capacity().await.unwrap(), (free - 100 * MIB, free - 100 * MIB));
        let refused = client.create("pvc-a", free, Mode::Block).await.unwrap_err();
        assert!(refused.message().contains("100 MiB of them kept in reserve"), "{refused}");
        let id = client.create("pvc-a", free - 100 * MIB, Mode::Ext4).await.unwrap().volume_id;
        client.stage(&id, &driver::folder("staging"), Mode::Ext4).await.unwrap();
        assert_eq!(client.expand(&id, free, Mode::Ext4).await.unwrap(), free);
        let refused = client.expand(&id, free + 1, Mode::Ext4).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::OutOfRange, "{refused}");
    });
}

#[test]
fn changes_behind_the_drivers_back_are_seen_by_the_very_next_call() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let (before, _) = client.capacity().await.unwrap();
        command("lvcreate", &["-y", "-n", "theirs", "-L", "100M", VG]);
        assert_eq!(client.capacity().await.unwrap().0, before - 100 * MIB);
        command("vgextend", &["-q", VG, lab::disks()[1].to_str().unwrap()]);
        let free: u64 = report("vgs", "vg_free", VG)[0].parse().unwrap();
        assert_eq!(client.capacity().await.unwrap().0, free);
        client.create("pvc-large", 1500 * MIB, Mode::Block).await.expect("it spans both disks");
    });
}

#[test]
fn a_group_that_is_made_later_is_found_without_a_restart() {
    boot(async || {
        let driver = Driver::start_with(&["--volume-group", "data-*"]).await;
        let mut client = driver.client().await;
        assert_eq!(client.capacity().await.unwrap(), (0, 0));
        make_group("data-1", &lab::disks()[1..]);
        driver::until("the new group is used", async || client.capacity().await.unwrap().0 > 0).await;
        client.create("pvc-a", 64 * MIB, Mode::Block).await.unwrap();
        assert_eq!(report("lvs", "lv_name", "data-1").len(), 1);
    });
}

#[test]
fn of_two_claims_that_fit_one_by_one_the_second_is_refused_and_what_is_left_is_told() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let free: u64 = report("vgs", "vg_free", VG)[0].parse().unwrap();
        assert_eq!(client.capacity().await.unwrap(), (free, free), "nothing is kept that nobody asked for");
        client.create("pvc-data", 800 * MIB, Mode::Ext4).await.unwrap();
        let left = free - 800 * MIB;
        let second = client.create("pvc-log", 800 * MIB, Mode::Ext4).await;
        assert_eq!(client.capacity().await.unwrap(), (left, left));
        refused(second, Code::ResourceExhausted, &format!("{} MiB are free", left / MIB));
        client.create("pvc-log", left, Mode::Ext4).await.unwrap();
        assert_eq!(client.capacity().await.unwrap(), (0, 0));
    });
}

/// The second group has less room than the first until the volume that is being made there is there.
#[test]
fn a_volume_is_cut_where_most_room_is_when_its_turn_has_come() {
    const METRICS: &str = "127.0.0.1:9809";
    boot(async || {
        let other = "vg1";
        make_group(other, &lab::disks()[1..]);
        command("lvcreate", &["-y", "-n", "theirs", "-L", "300M", other]);
        let groups = ["--volume-group", VG, "--volume-group", other, "--health-address", METRICS];
        let driver = Driver::start_with(&groups).await;
        let client = driver.client().await;
        let lock = lock_group();
        let create = |name: &'static str, size: u64| {
            let mut client = client.clone();
            tokio::spawn(async move { client.create(name, size, Mode::Block).await })
        };
        let first = create("pvc-first", 600 * MIB);
        driver.log().soon(&["running", "lvcreate"]).await;
        let second = create("pvc-second", 64 * MIB);
        driver::until("the second waits for the group that has most room until now", async || {
            let scrape = Scrape::of(METRICS.parse().unwrap()).await;
            scrape.value("quarry_vg_writers_waiting", &[("vg", VG)]) == 1.0
        })
        .await;
        drop(lock);
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        assert_eq!(report("lvs", "lv_name", VG), [lv_of("pvc-first").as_str()]);
        assert!(report("lvs", "lv_name", other).contains(&lv_of("pvc-second").to_string()));
    });
}
