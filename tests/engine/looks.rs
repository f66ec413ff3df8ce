//! What a look at the whole machine shows, and what an engine that sees too little does not.

use quarry::lvm::{Backend, Command, Health, LocalOptions, Sighting, sightings};

use super::support::{Bench, create, machine, name, on_disks, run, sh};

async fn seen(bench: &Bench) -> Vec<Sighting> {
    sightings(&bench.backend.look().await.unwrap(), bench.backend.system_id())
}

async fn health(bench: &Bench, vg: &str) -> Health {
    let all = seen(bench).await;
    let found = all.into_iter().find(|sighting| sighting.vg.name.as_str() == vg);
    found.unwrap_or_else(|| panic!("{vg} is not seen")).health
}

/// Lets the group look as if hosts shared it: no lvmlockd runs here that would do it.
const SHARE: &str = r#"vgcfgbackup -q -f /run/shr shr
sed -i 's/^\tseqno = .*/&\n\tlock_type = "dlm"\n\tlock_args = "1.0.0:cluster"/' /run/shr
vgcfgrestore -q --force -f /run/shr shr"#;

#[test]
fn groups_in_every_state_are_seen_and_told_apart() {
    machine(11).boot(|| {
        run(async {
            let disks: Vec<String> = lab::disks().iter().map(|disk| disk.display().to_string()).collect();
            let d = |number: usize| disks[number].as_str();
            let make = |vg: &str, number: usize| sh(&format!("vgcreate -q {vg} {}", d(number)));
            sh(&format!("vgcreate -q part {} {}", d(0), d(1)));
            sh(&format!("dd if=/dev/zero of={} bs=1M count=2 conv=fsync status=none", d(1)));
            make("exp", 4);
            sh("vgexport -q exp");
            make("frn", 5);
            sh("vgchange -qy --systemid other frn");
            make("shr", 6);
            sh(SHARE);
            make("dup", 7);
            sh(&format!("dd if={} of={} bs=1M count=4 conv=fsync status=none", d(7), d(8)));
            make("fine", 9);
            sh(&format!("pvcreate -q {}", d(10)));
            make("same", 2);
            sh(&format!("vgcreate -q --devices {} same {}", d(3), d(3)));
            let bench = Bench::start(LocalOptions::default()).await;
            assert_eq!(health(&bench, "fine").await, Health::Healthy);
            assert!(matches!(health(&bench, "part").await, Health::Partial(missing) if missing.len() == 1));
            assert_eq!(health(&bench, "exp").await, Health::Exported);
            assert_eq!(health(&bench, "frn").await, Health::Foreign("other".to_owned()));
            assert_eq!(health(&bench, "shr").await, Health::Shared);
            assert!(matches!(health(&bench, "dup").await, Health::DuplicatePv(_)));
            let same: Vec<_> = seen(&bench).await.into_iter().filter(|s| s.vg.name.as_str() == "same").collect();
            assert_eq!(same.len(), 2);
            assert!(same.iter().all(|sighting| matches!(sighting.health, Health::SameName(_))));
            let rows = bench.backend.look().await.unwrap();
            assert!(rows.iter().any(|row| row.vg.is_none() && row.device.as_deref() == lab::disks().last().map(|d| &**d)));
            bench.end().await;
        });
    });
}

#[test]
fn a_look_sees_the_groups_of_today() {
    on_disks(2, async |bench| {
        assert_eq!(seen(&bench).await[0].devices, bench.devices);
        sh("vgreduce -q vg0 /dev/ubdb");
        assert_eq!(seen(&bench).await[0].devices, bench.devices[..1]);
        sh("vgcreate -q vg1 /dev/ubdb");
        assert_eq!(seen(&bench).await.len(), 2);
        sh("vgremove -q vg1; vgrename -q vg0 vg2");
        assert_eq!(seen(&bench).await[0].vg.name.as_str(), "vg2");
        bench.end().await;
    });
}

#[test]
fn a_disk_that_cannot_be_read_hides_no_other_group() {
    on_disks(3, async |bench| {
        sh("vgreduce -q vg0 /dev/ubdb /dev/ubdc; vgcreate -q bad /dev/ubdb; vgcreate -q good /dev/ubdc");
        // The metadata's text, not its header.
        sh("dd if=/dev/urandom of=/dev/ubdb bs=512 seek=9 count=8 conv=fsync status=none");
        assert_eq!(health(&bench, "good").await, Health::Healthy);
        assert_eq!(health(&bench, "vg0").await, Health::Healthy);
        bench.end().await;
    });
}

/// The reason for a look and a new engine whenever the headers change: an engine's eyes do not grow.
#[test]
fn an_engine_that_was_opened_before_a_disk_was_added_calls_the_group_partial_and_a_new_one_does_not() {
    on_disks(2, async |bench| {
        sh("vgreduce -q vg0 /dev/ubdb");
        let before = bench.devices[..1].to_vec();
        let old = bench.backend.open(&bench.vg, &before);
        assert!(old.run(&bench.vg, &create("a", 1)).await.unwrap().success);
        let fingerprint = bench.backend.fingerprint(&before).await.unwrap();
        sh("vgextend -q vg0 /dev/ubdb");
        assert_ne!(bench.backend.fingerprint(&before).await.unwrap(), fingerprint);
        assert_eq!(old.run(&bench.vg, &Command::Group).await.unwrap().vgs[0].missing_pvs, 1);
        assert!(!old.run(&bench.vg, &create("b", 1)).await.unwrap().success);
        assert_eq!(health(&bench, "vg0").await, Health::Healthy);
        let new = bench.backend.open(&bench.vg, &seen(&bench).await[0].devices);
        assert_eq!(new.run(&bench.vg, &Command::Group).await.unwrap().vgs[0].missing_pvs, 0);
        assert!(new.run(&bench.vg, &create("b", 100)).await.unwrap().success);
        assert_eq!(health(&bench, "vg0").await, Health::Healthy);
        drop((old, new));
        bench.end().await;
    });
}

#[test]
fn a_group_that_lacks_a_disk_takes_no_change_and_its_whole_volumes_still_activate() {
    on_disks(2, async |bench| {
        bench.must(create("whole", 10)).await;
        bench.must(create("both", 70)).await;
        let segments = bench.must(Command::Segments(name("both"))).await.segments;
        assert_eq!(segments.len(), 2);
        sh("lvchange -an vg0; dd if=/dev/zero of=/dev/ubdb bs=1M count=2 conv=fsync status=none");
        let group = bench.must(Command::Group).await.vgs.remove(0);
        assert_eq!(group.missing_pvs, 1);
        assert!(bench.volume("both").await.partial && !bench.volume("whole").await.partial);
        bench.must_not(create("new", 1)).await;
        bench.must_not(Command::Activate(name("both"))).await;
        bench.must(Command::Activate(name("whole"))).await;
        assert!(bench.volume("whole").await.active);
        assert!(matches!(health(&bench, "vg0").await, Health::Partial(_)));
        bench.end().await;
    });
}

#[test]
fn an_open_volume_is_not_removed() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        let open = std::fs::File::open("/dev/vg0/a").unwrap();
        assert!(bench.volume("a").await.open);
        bench.must_not(Command::Remove(name("a"))).await;
        drop(open);
        bench.must(Command::Remove(name("a"))).await;
        bench.end().await;
    });
}
