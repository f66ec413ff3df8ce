//! What administrators do to a group while the driver uses it.

use std::path::Path;

use tonic::Code;

use super::support::{OTHER, announce, boot, resting, spare, start, works};
use crate::driver::{MIB, Mode, SIZE, VG, Volume, command, refused, report, sh, until};

/// How LVM marks a group from which a disk is missing, or a disk that it takes for missing.
fn is_whole() {
    assert_eq!(report("vgs", "vg_missing_pv_count", VG), ["0"]);
    assert_eq!(sh("pvs --noheadings -o pv_missing").trim(), "");
}

#[test]
fn volumes_of_a_renamed_group_are_used_and_new_ones_are_made_only_under_a_chosen_name() {
    boot(async || {
        let (_driver, client) = start(&["--volume-group", "data-*"]).await;
        let resting = resting(&client, "pvc-resting").await;
        let busy = Volume::in_use(&client, "pvc-busy", Mode::Ext4).await;
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        let mut client = client.clone();
        let mut name = VG;
        for new in ["data-1", "renamed"] {
            command("vgrename", &["-q", name, new]);
            name = new;
            let second = Path::new("/var/lib/kubelet/second");
            for volume in [&busy, &raw] {
                volume.stats().await.unwrap();
                volume.stage().await.unwrap();
                volume.publish().await.unwrap();
                volume.publish_at(second).await.unwrap();
                client.unpublish(&volume.id, second).await.unwrap();
            }
            works(&resting).await;
            command("lvchange", &["-an", &format!("{name}/{}", resting.id.split('/').nth(1).unwrap())]);

            let made = client.create_in(name, "pvc-new", SIZE, Mode::Block).await;
            let (room, _) = client.capacity_in(name).await.unwrap();
            if name == "data-1" {
                assert!(room > 0);
                client.delete(&made.unwrap().volume_id).await.unwrap();
            } else {
                refused(made, Code::ResourceExhausted, "has no volume group renamed that Quarry uses");
                assert_eq!(room, 0);
                assert_eq!(client.capacity().await.unwrap(), client.capacity_in(OTHER).await.unwrap());
                let there = client.create("pvc-new", SIZE, Mode::Block).await.unwrap();
                assert!(!there.volume_id.starts_with(busy.id.split('/').next().unwrap()));
            }
            assert_eq!(client.capacity_in(VG).await.unwrap(), (0, 0));
        }
        for volume in [&resting, &busy, &raw] {
            assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
        }
        busy.end().await;
        raw.end().await;
        for volume in [&resting, &busy, &raw] {
            volume.delete().await.unwrap();
        }
        assert_eq!(report("lvs", "lv_name", name), Vec::<String>::new());
    });
}

/// udev tells of each of the driver's own writes; a look at all disks is a process of its own.
#[test]
fn the_driver_looks_at_all_disks_for_what_others_wrote_and_not_for_its_own_writes() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let disk = lab::disks().remove(0);
        let known = ["written to, and known", disk.to_str().unwrap()];
        let look = ["running", "lvm pvs"];
        let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
        volume.prepared().await;
        let looks = driver.log().count(&look);
        announce(&disk);
        driver.log().soon(&known).await;
        volume.expand(64 * MIB).await.unwrap();
        announce(&disk);
        until("the second event is known", async || driver.log().count(&known) == 2).await;
        // Many commits make many events, which must not stand in the way of the one that matters.
        (0..100).for_each(|_| announce(&disk));
        until("all events are known", async || driver.log().count(&known) == 102).await;
        assert_eq!(driver.log().count(&look), looks);

        command("vgchange", &["-q", "--addtag", "somebody", VG]);
        announce(&disk);
        until("a look", async || driver.log().count(&look) > looks).await;
        assert_eq!(driver.log().count(&known), 102);
    });
}

#[test]
fn a_group_that_grows_and_shrinks_is_used_as_it_is_and_stays_whole() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let mut client = client.clone();
        let small = client.capacity_in(VG).await.unwrap();
        let extra = spare().display().to_string();
        for _ in 0..2 {
            let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
            volume.prepared().await;
            command("vgextend", &["-q", "-y", VG, &extra]);
            // A command that sees only the disks of before would take the new one for missing.
            volume.delete().await.unwrap();
            is_whole();
            assert_eq!(client.capacity_in(VG).await.unwrap().0, 2 * small.0);
            let spanning = client.create_in(VG, "pvc-b", small.0 + 64 * MIB, Mode::Ext4).await.unwrap();
            client.delete(&spanning.volume_id).await.unwrap();
            is_whole();

            let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
            command("vgreduce", &["-q", VG, &extra]);
            command("pvremove", &["-q", &extra]);
            volume.delete().await.unwrap();
            is_whole();
            assert_eq!(client.capacity_in(VG).await.unwrap(), small);
        }
    });
}

#[test]
fn a_volume_whose_layout_an_administrator_changed_is_used_all_the_same() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        sh(&format!("modprobe dm-raid; vgextend -q -y {VG} {}", spare().display()));
        for lv in [volume.lv(), raw.lv()] {
            sh(&format!("lvchange -ay {lv}; lvconvert -q -y --type raid1 -m1 {lv}"));
        }
        works(&volume).await;
        volume.start().await;
        volume.stats().await.unwrap();
        raw.publish().await.unwrap();
        raw.stats().await.unwrap();
        assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
        for volume in [&volume, &raw] {
            volume.end().await;
            volume.delete().await.unwrap();
        }
        assert_eq!(sh(&format!("lvs -a --noheadings {VG}")).trim(), "");
    });
}

#[test]
fn a_volume_stays_in_use_while_it_is_moved_to_another_disk() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        std::fs::write(volume.target.join("marker"), "kept").unwrap();
        let (old, new) = (lab::disks().remove(0).display().to_string(), spare().display().to_string());
        sh("modprobe dm-mirror");
        sh(&format!(
            "vgextend -q -y {VG} {new}; pvmove -q -y {old} {new}; vgreduce -q {VG} {old}; pvremove -q {old}"
        ));
        is_whole();
        volume.publish().await.unwrap();
        assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
        volume.end().await;
        works(&volume).await;
        volume.delete().await.unwrap();
    });
}
