use quarry::exec::Program;

use super::support::{Shown, boot, claimed, everything, quarry, told};
use crate::driver::{Driver, Mode, VG, Volume, command, make_group, report, sh};

/// What is told of something that is wrong: `UNHEALTHY  about: found`, and in the next line what to do.
#[track_caller]
fn unhealthy(shown: &Shown, about: &str, found: &str, advice: &str) {
    assert_eq!(shown.code, 2, "{shown:?}");
    let lines: Vec<&str> = shown.text.lines().collect();
    let told = lines.windows(2).any(|two| {
        two[0].starts_with(&format!("UNHEALTHY  {about}: "))
            && two[0].contains(found)
            && two[1].contains(advice)
    });
    assert!(told, "{about}: {found}: {advice}:\n{}", shown.text);
}

fn check() -> Shown {
    quarry(&["check", "--volume-group", VG])
}

#[test]
fn a_healthy_machine_is_healthy_and_a_look_changes_nothing() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        Volume::in_use(&client, "pvc-b", Mode::Block).await;
        let before = everything();
        assert_eq!(told(&["check", "--volume-group", VG]), "0 unhealthy, 0 to note; groups looked at: 1\n");
        assert_eq!(told(&["check", "--volume-group", VG, "--json"]).trim(), "[]");
        assert_eq!(everything(), before);
        driver.kill();
        assert_eq!(check().code, 0);
        let absent = quarry(&["check", "--volume-group", "nowhere*"]);
        assert_eq!(absent.code, 0, "a node without a group is fine: {absent:?}");
        assert!(
            absent.text.contains("note       nowhere*: no volume group here has this name"),
            "{absent:?}"
        );
    });
}

#[test]
fn a_look_needs_lvm_and_no_other_program() {
    boot(async || {
        let driver = Driver::start().await;
        Volume::in_use(&driver.client().await, "pvc-a", Mode::Ext4).await;
        driver.kill();
        let away = |programs: &[Program], from: &str, to: &str| {
            for program in programs {
                let path = sh(&format!("command -v {program}{from}")).trim().to_owned();
                sh(&format!("mv {path} {}{to}", path.trim_end_matches(".away")));
            }
        };
        let others: Vec<Program> = Program::ALL.into_iter().filter(|one| *one != Program::Lvm).collect();
        away(&others, "", ".away");
        for look in ["check", "vgs", "volumes"] {
            told(&[look, "--volume-group", VG]);
        }
        away(&others, ".away", "");
        away(&[Program::Lvm], "", ".away");
        for look in ["check", "vgs", "volumes"] {
            let shown = quarry(&[look, "--volume-group", VG]);
            assert_eq!(shown.code, 1, "{shown:?}");
            assert!(shown.errors.contains("missing programs: lvm (package lvm2)\n"), "{shown:?}");
        }
        away(&[Program::Lvm], ".away", "");
    });
}

#[test]
fn a_group_that_takes_no_change_is_unhealthy() {
    boot(async || {
        command("vgextend", &["-q", "-y", VG, lab::disks()[1].to_str().unwrap()]);
        sh(&format!("vgexport -q {VG}"));
        unhealthy(&check(), VG, "it is exported", "vgimport vg0");
        sh(&format!("vgimport -q {VG}"));
        assert_eq!(check().code, 0);
        let driver = Driver::start().await;
        let volume = claimed(&driver.client().await, "pvc-a", "a", Mode::Block).await;
        volume.prepared().await;
        driver.kill();
        sh(&format!("lvchange -an {0}; pvmove -q -n {0} 2> /dev/null || true", volume.lv()));
        // The disk that the volume does not lie on, and then the one that it does.
        let [first, second] = &lab::disks()[..2] else { panic!() };
        let away = |disk: &std::path::Path| {
            sh(&format!(
                "dd if={0} of=/hidden bs=1M count=1 status=none; dd if=/dev/zero of={0} bs=1M count=1 conv=fsync status=none",
                disk.display()
            ))
        };
        let back = |disk: &std::path::Path| {
            sh(&format!("dd if=/hidden of={} conv=fsync status=none", disk.display()))
        };
        away(second);
        unhealthy(&check(), VG, "disks of it are missing: ", "connect the disks");
        assert!(
            !check().text.contains(&format!("UNHEALTHY  {}", volume.lv())),
            "it lies wholly on the other disk"
        );
        back(second);
        away(first);
        unhealthy(&check(), &volume.lv(), "some of it lies on a disk that is not there", "connect the disk");
        back(first);
        assert_eq!(check().code, 0);
    });
}

#[test]
fn a_volume_that_does_not_work_is_unhealthy() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        let dead = Volume::in_use(&client, "pvc-dead", Mode::Ext4).await;
        let stopped = Volume::in_use(&client, "pvc-stopped", Mode::Ext4).await;
        let forced = Volume::in_use(&client, "pvc-forced", Mode::Btrfs).await;
        let strange = Volume::create(&client, "pvc-strange", Mode::Block).await;
        strange.prepared().await;
        driver.kill();
        strange.retag("q.n=pvc-strange", "");
        unhealthy(&check(), &strange.lv(), "it is left alone: its tag q.n is missing", "lvs -o +lv_tags");
        sh(&format!("dmsetup suspend {}", stopped.dm_name()));
        unhealthy(
            &check(),
            &stopped.lv(),
            "it is suspended",
            &format!("lvchange --refresh {}", stopped.lv()),
        );
        sh(&format!("dmsetup resume {}", stopped.dm_name()));
        assert!(!check().text.contains(&stopped.lv()));
        sh(&format!(
            "dmsetup suspend --noflush {0}; dmsetup load {0} --table '0 32768 error'; dmsetup resume {0}",
            dead.dm_name()
        ));
        drop(std::fs::write(dead.target.join("lost"), "x"));
        sh("sync; echo 3 > /proc/sys/vm/drop_caches");
        unhealthy(&check(), &dead.lv(), "the file system does not work", "end the pods that use it");
        let inner = forced.target.join("inner");
        std::fs::create_dir(&inner).unwrap();
        sh("sync");
        forced.gives_up(&inner);
        forced.fail(false);
        let why = "the kernel has made the file system read-only";
        unhealthy(&check(), &forced.lv(), why, "end the pods that use it");
    });
}

#[test]
fn what_was_never_finished_or_never_used_is_told() {
    boot(async || {
        make_group("small", &lab::disks()[1..]);
        let driver = Driver::start().await;
        let client = driver.client().await;
        let fresh = Volume::create(&client, "pvc-fresh", Mode::Ext4).await;
        let blank = Volume::create(&client, "pvc-blank", Mode::Block).await;
        for volume in [&fresh, &blank] {
            volume.prepared().await;
        }
        driver.kill();
        blank.retag("q.s=f", "q.s=b");
        assert_eq!(check().text, "0 unhealthy, 0 to note; groups looked at: 1\n", "they are young");
        sh("date -s '+2 hours' > /dev/null");
        let shown = check();
        assert_eq!(shown.code, 0, "{shown:?}");
        for words in [
            format!("note       {}: it was made 2 hours ago and never used", fresh.lv()),
            format!("note       {}: it was made 2 hours ago and is not prepared yet", blank.lv()),
        ] {
            assert!(shown.text.contains(&words), "{words}: {shown:?}");
        }
        sh("date -s '+23 hours' > /dev/null");
        unhealthy(&check(), &blank.lv(), "it is not written to any more", "delete the claim");
        // A group without room, and one whose metadata area is nearly full.
        command("lvcreate", &["-q", "-y", "-an", "-Zn", "-n", "all", "-l", "100%FREE", "small"]);
        let full = quarry(&["check", "--volume-group", "small"]);
        assert!(full.text.contains("note       small: no room for new volumes: 0 B are free"), "{full:?}");
    });
}

#[test]
fn a_nearly_full_metadata_area_is_unhealthy() {
    boot(async || {
        sh(&format!("vgcreate -q -y --metadatasize 256k small {}", lab::disks()[1].display()));
        let tags: String = (0..10).map(|n| format!(" --addtag {n}{}", "x".repeat(999))).collect();
        let free = || report("vgs", "vg_mda_free", "small")[0].parse::<u64>().unwrap();
        for number in 0.. {
            if free() < 30 << 10 {
                break;
            }
            sh(&format!("lvcreate -q -y -an -Zn -Wn -l 1{tags} -n filler{number} small"));
        }
        let shown = quarry(&["check", "--volume-group", "small"]);
        unhealthy(&shown, "small", "metadata area on its disks is nearly full", "--metadatasize 16m");
    });
}

#[test]
fn a_disk_that_takes_no_new_extents_is_told() {
    boot(async || {
        let second = lab::disks().remove(1);
        let second = second.to_str().unwrap();
        command("vgextend", &["-q", "-y", VG, second]);
        assert_eq!(check().text, "0 unhealthy, 0 to note; groups looked at: 1\n");
        command("pvchange", &["-q", "-xn", second]);
        let shown = check();
        assert_eq!(shown.code, 0, "{shown:?}");
        let words = format!("note       {VG}: its disk {second} takes no new extents: ");
        assert!(
            shown.text.contains(&words) && shown.text.contains(&format!("pvchange -xy {second}")),
            "{shown:?}"
        );
        let table = quarry(&["vgs", "--volume-group", VG]);
        assert!(table.text.contains("on disks that take no new extents"), "{table:?}");
    });
}
