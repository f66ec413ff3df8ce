//! Each state in which a group is not used: recognised while the driver runs, named, and forgotten when
//! it is over.

use tonic::Code;

use super::support::{
    announce, boot, bring_back, hide, recovers, resting, spare, start, takes_nothing, works,
};
use crate::driver::{Driver, Mode, SIZE, VG, Volume, make_group, refused, report, sh, until};

/// What befalls a group, and what ends it.
struct Trouble<'a> {
    befalls: &'a str,
    reason: &'a str,
    ends: &'a str,
}

/// Lets it befall [`VG`], and demands that the group is not used until it is over.
async fn is_not_used(volume: &Volume, driver: &Driver, trouble: Trouble<'_>) {
    let client = driver.client().await;
    sh(trouble.befalls);
    takes_nothing(&client, trouble.reason).await;
    refused(volume.stage().await, Code::Unavailable, trouble.reason);
    refused(volume.expand(64 << 20).await, Code::Unavailable, trouble.reason);
    refused(volume.delete().await, Code::Unavailable, trouble.reason);
    let unknown = format!("{}x", volume.id);
    refused(client.clone().delete(&unknown).await, Code::Unavailable, trouble.reason);
    assert!(driver.log().has(&["the volume group is unhealthy", VG, trouble.reason]));
    sh(trouble.ends);
    recovers(&client).await;
    works(volume).await;
    sh(&format!("lvchange -an {}", volume.lv()));
}

#[test]
fn a_group_that_is_exported_foreign_or_shared_is_not_used() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        let export = Trouble {
            befalls: &format!("vgexport -q {VG}"),
            reason: "it is exported",
            ends: &format!("vgimport -q {VG}"),
        };
        is_not_used(&volume, &driver, export).await;

        let both = r#"global{system_id_source="lvmlocal"} local{system_id="me" extra_system_ids=["other"]}"#;
        let foreign = Trouble {
            befalls: &format!("vgchange -q -y --systemid other {VG}"),
            reason: "it belongs to the system \"other\"",
            ends: &format!("vgchange -q -y --config '{both}' --systemid '' {VG}"),
        };
        is_not_used(&volume, &driver, foreign).await;

        let shared = Trouble {
            befalls: &format!(
                r#"vgcfgbackup -f /own.vg {VG}
                sed 's/^\tstatus = \["RES.*/&\n\tlock_type = "sanlock"\n\tlock_args = "1.0.0:x"/' /own.vg > /shared.vg
                vgcfgrestore -y -f /shared.vg {VG}"#
            ),
            reason: "it is shared between hosts",
            ends: &format!("vgchange -q -y --lock-type none --lock-opt force {VG}"),
        };
        is_not_used(&volume, &driver, shared).await;
        assert_eq!(
            volume.delete().await.map(|()| report("lvs", "lv_name", VG)).unwrap(),
            Vec::<String>::new()
        );
    });
}

#[test]
fn of_a_group_that_is_gone_nothing_is_said() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        let disk = lab::disks().remove(0);
        hide(&disk);
        takes_nothing(&client, &format!("has no volume group {VG} that Quarry uses")).await;
        let reason = "is not on this machine now";
        refused(volume.stage().await, Code::Unavailable, reason);
        refused(volume.expand(64 << 20).await, Code::Unavailable, reason);
        refused(volume.delete().await, Code::Unavailable, reason);
        refused(client.clone().delete(&format!("{}x", volume.id)).await, Code::Unavailable, reason);
        assert!(driver.log().has(&["the volume group is gone"]));
        bring_back(&disk);
        recovers(&client).await;
        works(&volume).await;
    });
}

#[test]
fn a_group_made_anew_under_its_name_is_another_one_and_a_refusal_names_both() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        let disk = lab::disks().remove(0).display().to_string();
        let uuid = || report("vgs", "vg_uuid", VG).remove(0);
        let old = uuid();
        sh(&format!("vgremove -q -y -f {VG} && vgcreate -q -y {VG} {disk}"));
        let (new, seqno) = (uuid(), report("vgs", "vg_seqno", VG));
        until("the new group is seen", async || client.clone().capacity_in(VG).await.unwrap().0 > 0).await;
        for answer in [volume.stage().await, volume.delete().await, volume.expand(2 * SIZE).await.map(drop)] {
            refused(answer.clone(), Code::Unavailable, &format!("volume group {old} is not on this machine"));
            refused(answer, Code::Unavailable, &format!("{VG} ({new})"));
        }
        assert_eq!(report("vgs", "vg_seqno", VG), seqno, "nothing was written to it");
        let another = Volume::create(&client, "pvc-b", Mode::Ext4).await;
        assert_ne!(another.id.split('/').next(), volume.id.split('/').next());
        another.start().await;
        another.end().await;
    });
}

#[test]
fn of_two_groups_with_one_name_neither_is_used() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        let disk = spare().display().to_string();
        sh(&format!("vgcreate -q -y --devices {disk} {VG} {disk}"));
        // Until it is noticed each command sees the disks of one group only.
        driver.log().soon(&["the volume group is unhealthy", "has the same name"]).await;
        let twin = Trouble {
            befalls: "true",
            reason: "has the same name (vgrename one of them by its UUID)",
            ends: &format!("vgrename -q --devices {disk} {VG} renamed"),
        };
        is_not_used(&volume, &driver, twin).await;
        let seqno = report("vgs", "vg_seqno", "renamed").remove(0);
        assert_eq!(seqno, "2", "nothing was ever written to the other but its name");
        sh("vgremove -q -y renamed");
    });
}

#[test]
fn a_group_with_a_disk_that_is_there_twice_takes_no_change() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let (volume, active) = (resting(&client, "pvc-a").await, resting(&client, "pvc-active").await);
        active.start().await;
        let (own, copy) = (lab::disks().remove(0), spare());
        sh(&format!("dd if={} of={} bs=1M count=2 conv=fsync status=none", own.display(), copy.display()));
        announce(&copy);
        driver.log().soon(&["the volume group is unhealthy", "is there twice"]).await;

        let reason = "is there twice: remove the copy";
        takes_nothing(&client, reason).await;
        for volume in [&volume, &active] {
            refused(volume.expand(64 << 20).await, Code::Unavailable, reason);
        }
        refused(volume.stage().await, Code::Unavailable, reason);
        refused(volume.delete().await, Code::Unavailable, reason);
        refused(client.clone().delete(&format!("{}x", volume.id)).await, Code::Unavailable, reason);
        active.start().await;
        active.stats().await.unwrap();
        active.end().await;
        works(&active).await;

        sh(&format!("dd if=/dev/zero of={} bs=1M count=2 conv=fsync status=none", copy.display()));
        announce(&copy);
        recovers(&client).await;
        works(&volume).await;
    });
}

#[test]
fn a_group_whose_name_leaves_no_room_for_those_of_volumes_is_not_used_until_it_is_renamed() {
    boot(async || {
        let long = format!("vg{}", "x".repeat(90));
        make_group(&long, &[spare()]);
        let driver = Driver::start_with(&["--volume-group", "vg*"]).await;
        let mut client = driver.client().await;
        let reason = "its name is too long for device mapper";
        refused(client.create_in(&long, "pvc-a", SIZE, Mode::Block).await, Code::ResourceExhausted, reason);
        assert_eq!(client.capacity_in(&long).await.unwrap(), (0, 0));
        assert!(client.capacity_in(VG).await.unwrap().0 > 0);
        sh(&format!("vgrename -q {long} vg-short"));
        until("it is used", async || client.capacity_in("vg-short").await.unwrap().0 > 0).await;
        client.create_in("vg-short", "pvc-a", SIZE, Mode::Block).await.unwrap();
    });
}
