//! Fingerprints, flushes and backups.

use std::path::{Path, PathBuf};

use quarry::lvm::{Backend, Command, EngineError, LocalOptions};

use super::support::{Bench, create, extend, machine, name, on_disks, run, sh};

#[test]
fn every_commit_by_anybody_changes_the_fingerprint_and_nothing_else_does() {
    on_disks(2, async |bench| {
        let see = async || bench.backend.fingerprint(&bench.devices).await.unwrap();
        let mut before = see().await;
        let retag = Command::Retag { name: name("a"), remove: "q.s=b".into(), add: "q.s=f".into() };
        for command in [create("a", 1), extend("a", 2), retag] {
            bench.must(command.clone()).await;
            let after = see().await;
            assert_ne!(before, after, "{command}");
            before = after;
        }
        for command in [
            Command::Group,
            Command::Volumes,
            Command::Segments(name("a")),
            Command::Activate(name("a")),
            Command::Refresh(name("a")),
        ] {
            bench.must(command.clone()).await;
            assert_eq!(before, see().await, "{command}");
        }
        bench.backend.look().await.unwrap();
        bench.backend.flush(&bench.devices).await.unwrap();
        bench.backend.back_up(&bench.vg, &bench.devices).await.unwrap();
        sh("pvs; vgs; lvs; lvchange -an vg0/a; lvchange -ay vg0/a; vgcfgbackup vg0");
        assert_eq!(before, see().await);
        for line in
            ["lvchange --addtag x vg0/a", "vgchange --addtag x vg0", "vgrename vg0 vg1", "vgrename vg1 vg0"]
        {
            sh(line);
            let after = see().await;
            assert_ne!(before, after, "{line}");
            before = after;
        }
        bench.end().await;
    });
}

#[test]
fn a_disk_that_is_gone_or_another_one_is_noticed() {
    on_disks(2, async |bench| {
        let before = bench.backend.fingerprint(&bench.devices).await.unwrap();
        let swapped: Vec<PathBuf> = bench.devices.iter().rev().cloned().collect();
        assert_ne!(bench.backend.fingerprint(&swapped).await.unwrap(), before);
        let path = bench.devices[1].display();
        sh(&format!(
            "dd if={path} of=/run/saved bs=1M count=4 status=none; dd if=/dev/zero of={path} bs=1M count=4 conv=fsync status=none"
        ));
        let wiped = bench.backend.fingerprint(&bench.devices).await;
        assert!(
            matches!(&wiped, Err(EngineError::Disk { device, .. }) if *device == bench.devices[1]),
            "{wiped:?}"
        );
        assert!(bench.backend.flush(&bench.devices).await.is_err());
        sh(&format!("dd if=/run/saved of={path} bs=1M conv=fsync status=none"));
        assert_eq!(bench.backend.fingerprint(&bench.devices).await.unwrap(), before);
        let absent = [bench.devices[0].clone(), "/dev/nothing".into()];
        assert!(matches!(bench.backend.fingerprint(&absent).await, Err(EngineError::Disk { .. })));
        bench.end().await;
    });
}

/// How often the disk was told to flush its cache (Documentation/block/stat.rst: the 16th number).
fn flushes(disk: &Path) -> u64 {
    let name = disk.file_name().unwrap().to_str().unwrap();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(15).unwrap().parse().unwrap()
}

#[test]
fn a_flush_reaches_each_disk_that_holds_metadata_and_lvm_alone_flushes_none() {
    machine(3).boot(|| {
        run(async {
            let disks = lab::disks();
            sh(&format!("pvcreate -q --metadatacopies 0 {}", disks[2].display()));
            let all: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
            sh(&format!("vgcreate -q vg0 {}", all.join(" ")));
            let bench = Bench::start(LocalOptions::default()).await;
            let count = || disks.iter().map(|disk| flushes(disk)).collect::<Vec<_>>();
            let before = count();
            bench.must(create("a", 1)).await;
            assert_eq!(count(), before, "lvm flushes by itself now: read its release notes");
            bench.backend.flush(&disks).await.unwrap();
            let after: Vec<u64> = count().iter().zip(before).map(|(after, before)| after - before).collect();
            assert_eq!(after, [1, 1, 0]);
            bench.end().await;
        });
    });
}

#[test]
fn metadata_is_found_wherever_it_lies_and_whatever_sectors_a_disk_has() {
    machine(1).boot(|| {
        run(async {
            let disks = lab::disks();
            sh("truncate -s 64M /run/disk; modprobe loop; losetup --sector-size 4096 /dev/loop0 /run/disk");
            assert_eq!(sh("cat /sys/block/loop0/queue/logical_block_size"), "4096");
            sh(&format!("pvcreate -q --metadatacopies 2 {}", disks[0].display()));
            for disk in [Path::new("/dev/loop0"), &disks[0]] {
                sh(&format!("vgcreate -q vg0 {}", disk.display()));
                let bench = Bench::start(LocalOptions::default()).await;
                let devices = [disk.to_owned()];
                let engine = bench.backend.open(&bench.vg, &devices);
                let before = bench.backend.fingerprint(&devices).await.unwrap();
                assert!(engine.run(&bench.vg, &create("a", 1)).await.unwrap().success);
                assert_ne!(bench.backend.fingerprint(&devices).await.unwrap(), before);
                bench.backend.flush(&devices).await.unwrap();
                drop(engine);
                bench.end().await;
                sh("vgremove -qf vg0");
            }
        });
    });
}

#[test]
fn backups_are_kept_on_the_host_in_a_bounded_number() {
    on_disks(1, async |bench| {
        let uuid = bench.must(Command::Group).await.vgs[0].uuid.clone();
        let own = Path::new("/var/lib/quarry/backup").join(uuid.as_str());
        for number in 0..13 {
            bench.must(create(&format!("v{number}"), 1)).await;
            bench.backend.back_up(&bench.vg, &bench.devices).await.unwrap();
        }
        let current = std::fs::read_to_string(own.join("current.vg")).unwrap();
        assert!(current.contains(&format!("seqno = {}\n", bench.seqno().await)) && current.contains("v12 {"));
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 11);
        assert_eq!(std::fs::read_dir(own.parent().unwrap()).unwrap().count(), 1);
        assert!(bench.backend.back_up(&"nope".parse().unwrap(), &bench.devices).await.is_err());
        assert_eq!(std::fs::read_dir(own.parent().unwrap()).unwrap().count(), 1);
        bench.end().await;
        sh(&format!("lvremove -qy vg0; vgcfgrestore -q -f {} vg0", own.join("seqno-10.vg").display()));
        assert_eq!(sh("vgs --noheadings -o lv_count vg0"), "9");
    });
}
