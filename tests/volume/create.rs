use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use quarry::proto::csi::v1 as csi;
use tonic::Code;

use super::support::with_driver;
use crate::driver::{self, Driver, MIB, Mode, VG, Volume, command, make_group, refused, report};

fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(body());
    });
}

#[test]
fn thirty_creates_of_one_name_at_once_make_one_volume() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        let calls: Vec<_> = (0..30)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    loop {
                        match client.create("pvc-one", 64 * MIB, Mode::Ext4).await {
                            Err(status) if status.code() == Code::Aborted => tokio::task::yield_now().await,
                            answer => return answer.unwrap().volume_id,
                        }
                    }
                })
            })
            .collect();
        let mut ids = Vec::new();
        for call in calls {
            ids.push(call.await.unwrap());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!(report("lvs", "lv_name", VG).len(), 1);
    });
}

#[test]
fn a_caller_that_gives_up_finds_its_one_volume_when_it_asks_again() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let gone =
            tokio::time::timeout(Duration::from_millis(5), client.create("pvc-one", 64 * MIB, Mode::Ext4))
                .await;
        assert!(gone.is_err(), "the caller was to give up before the answer");
        let id = loop {
            match client.create("pvc-one", 64 * MIB, Mode::Ext4).await {
                Err(status) if status.code() == Code::Aborted => tokio::task::yield_now().await,
                answer => break answer.unwrap().volume_id,
            }
        };
        assert_eq!(report("lvs", "lv_name", VG).len(), 1);
        client.delete(&id).await.unwrap();
    });
}

#[test]
fn the_same_name_with_other_wishes_is_refused() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        client.create("pvc-one", 64 * MIB, Mode::Ext4).await.unwrap();
        client.create("pvc-one", 32 * MIB, Mode::Ext4).await.expect("the volume is large enough for this");
        let larger = client.create("pvc-one", 128 * MIB, Mode::Ext4).await.unwrap_err();
        assert_eq!(larger.code(), Code::AlreadyExists, "{larger}");
        let raw = client.create("pvc-one", 64 * MIB, Mode::Block).await.unwrap_err();
        assert_eq!(raw.code(), Code::AlreadyExists, "{raw}");
    });
}

#[test]
fn a_volume_that_somebody_else_made_is_left_alone() {
    boot(async || {
        let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
        command("lvcreate", &["-y", "-n", name, "-L", "64M", VG]);
        let vg = report("vgs", "vg_uuid", VG).remove(0);
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let create = client.create(name, 64 * MIB, Mode::Ext4).await.unwrap_err();
        assert_eq!(create.code(), Code::AlreadyExists, "{create}");
        let delete = client.delete(&format!("{vg}/{name}")).await.unwrap_err();
        assert_eq!(delete.code(), Code::FailedPrecondition, "{delete}");
        assert_eq!(report("lvs", "lv_name,lv_tags", VG), [format!("{name}|")]);
    });
}

#[test]
fn no_room_is_told_before_anything_is_started_and_the_capacity_says_the_same() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let (available, maximum) = client.capacity().await.unwrap();
        assert_eq!(available, maximum);
        let seqno = report("vgs", "vg_seqno", VG);
        let status = client.create("pvc-big", maximum + 1, Mode::Block).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("are free"), "{status}");
        assert_eq!(report("vgs", "vg_seqno", VG), seqno, "nothing was started");
        client.create("pvc-all", maximum, Mode::Block).await.unwrap();
        assert_eq!(client.capacity().await.unwrap(), (0, 0));
    });
}

#[test]
fn sizes_are_rounded_up_to_extents_on_the_node() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let volume = client.create("pvc-odd", 20_000_001, Mode::Block).await.unwrap();
        assert_eq!(volume.capacity_bytes, 20 << 20);
        assert!(Path::new("/dev/mapper").exists());
        assert_eq!(report("lvs", "lv_size", VG), [(20 << 20).to_string()]);
    });
}

#[test]
fn the_tags_hold_all_that_is_known_of_a_volume_from_the_first_commit_on() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let seqno: u64 = report("vgs", "vg_seqno", VG)[0].parse().unwrap();
        let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
        let id = client.create(name, 64 * MIB, Mode::Ext4).await.unwrap().volume_id;
        assert!(id.ends_with(&format!("/{name}")));
        Volume::existing(&client, name, Mode::Ext4).prepared().await;
        client.stage(&id, &driver::folder("staging"), Mode::Ext4).await.unwrap();
        let tags = &report("lvs", "lv_tags", VG)[0];
        assert_eq!(*tags, format!("q.m=ext4,q.n={name},q.s=u,q.v=1"));
        let now: u64 = report("vgs", "vg_seqno", VG)[0].parse().unwrap();
        assert_eq!(now - seqno, 3, "one commit to create, one for fresh, one for used");
    });
}

#[test]
fn a_limit_is_judged_on_whole_extents_and_without_a_size_there_is_one_gib() {
    with_driver(async |_driver, client| {
        let create = async |name: &str, required: i64, limit: i64| {
            let request = csi::CreateVolumeRequest {
                name: name.to_owned(),
                capacity_range: Some(csi::CapacityRange { required_bytes: required, limit_bytes: limit }),
                volume_capabilities: vec![Mode::Block.capability()],
                ..Default::default()
            };
            client.clone().create_with(request).await.map(|volume| volume.capacity_bytes)
        };
        refused(create("pvc-limited", 10_000_001, 10_000_002).await, Code::OutOfRange, "12 MiB");
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        assert_eq!(create("pvc-odd", 10_000_001, 0).await.unwrap(), 12 << 20);
        assert_eq!(create("pvc-limited", 10_000_001, 12 << 20).await.unwrap(), 12 << 20);
        assert_eq!(create("pvc-any", 0, 0).await.unwrap(), 1 << 30);
        assert_eq!(create("pvc-small", 0, 9 << 20).await.unwrap(), 8 << 20);
    });
}

/// The least that the first release wrote down of a volume.
fn as_the_first_release_made_it(name: &str, mode: Mode) {
    let tags = ["q.v=1", "q.s=b", &format!("q.n={name}"), &format!("q.m={}", mode.word())]
        .map(|tag| format!("--addtag={tag}"));
    let tags = tags.each_ref().map(String::as_str);
    command("lvcreate", &[&["-q", "-y", "-Wn", "-Zn", "-n", name, "-L", "64M", VG], &tags[..]].concat());
}

#[test]
fn a_volume_that_is_there_with_the_tags_of_the_first_release_is_taken_for_what_it_is() {
    with_driver(async |_driver, client| {
        for mode in [Mode::Ext4, Mode::Block] {
            let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
            as_the_first_release_made_it(name, mode);
            let uuid = report("lvs", "lv_uuid", VG);
            let other = client.clone().create(name, 128 * MIB, mode).await;
            refused(other, Code::AlreadyExists, "64 MiB");
            let made = client.clone().create(name, 64 * MIB, mode).await.unwrap();
            let volume = Volume::existing(&client, name, mode);
            assert_eq!((made.volume_id.as_str(), report("lvs", "lv_uuid", VG)), (volume.id.as_str(), uuid));
            volume.start().await;
            assert_eq!(volume.expand(128 * MIB).await.unwrap(), 128 * MIB);
            volume.end().await;
            volume.delete().await.unwrap();
            assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        }
    });
}

#[test]
fn names_that_lvm_keeps_for_itself_or_does_not_take_are_names_of_volumes_all_the_same() {
    with_driver(async |_driver, client| {
        let names =
            ["pvmove0", "snapshot-1234", "x_tmeta", "x_mlogy", "lvol0_pmspare", "-dash", "a b", "a/b", "ü"];
        let mut ids = BTreeSet::new();
        for name in names {
            let made = client.clone().create(name, 4 * MIB, Mode::Block).await.unwrap().volume_id;
            assert_eq!(client.clone().create(name, 4 * MIB, Mode::Block).await.unwrap().volume_id, made);
            assert!(ids.insert(made), "{name}");
        }
        assert_eq!(report("lvs", "lv_name", VG).len(), names.len());
        for id in ids {
            client.clone().delete(&id).await.unwrap();
        }
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    });
}

#[test]
fn nothing_of_a_deleted_volume_is_read_in_the_one_that_gets_its_extents() {
    with_driver(async |_driver, client| {
        for former in Mode::ALL {
            let volume = Volume::in_use(&client, "pvc-former", former).await;
            let places = report("lvs", "seg_pe_ranges", VG);
            volume.end().await;
            driver::sh(&format!(
                "yes secret | dd of={} bs=1M iflag=fullblock count={} conv=fsync status=none || true",
                volume.device().display(),
                former.size() / MIB
            ));
            volume.delete().await.unwrap();
            let name = format!("pvc-after-{}", former.word());
            let made = client.clone().create_in(VG, &name, former.size(), Mode::Block).await.unwrap();
            assert_eq!(made.capacity_bytes.cast_unsigned(), former.size());
            let next = Volume::existing(&client, &name, Mode::Block);
            next.start().await;
            assert_eq!(report("lvs", "seg_pe_ranges", VG), places, "it has other extents");
            command("cmp", &["-n", &former.size().to_string(), next.target.to_str().unwrap(), "/dev/zero"]);
            next.end().await;
            next.delete().await.unwrap();
        }
    });
}
