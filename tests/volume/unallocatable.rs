//! A disk that takes no new extents (`pvchange -xn`), as administrators say of one that is to be emptied.

use std::path::{Path, PathBuf};

use quarry::types::{Extents, GrowthTags, LvName};
use tonic::Code;

use crate::driver::{
    self, Client, Driver, MIB, Mode, SIZE, VG, Volume, command, make_group, refused, report,
};

/// What the driver keeps of the group for growth.
const RESERVE: u64 = 64 * MIB;

const EXTENT: u64 = 4 * MIB;

/// Boots a machine with a group of two disks, and a driver on it.
fn boot(body: impl AsyncFnOnce(Client, [PathBuf; 2])) {
    lab::Machine::new().disk("512M").disk("512M").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let driver = Driver::start_with(&["--volume-group", &format!("{VG}=64MiB")]).await;
            body(driver.client().await, lab::disks().try_into().unwrap()).await;
        });
    });
}

fn close(disk: &Path) {
    command("pvchange", &["-q", "-xn", disk.to_str().unwrap()]);
}

fn open(disk: &Path) {
    command("pvchange", &["-q", "-xy", disk.to_str().unwrap()]);
}

fn free_on(disk: &Path) -> u64 {
    report("pvs", "pv_free", disk.to_str().unwrap())[0].parse().unwrap()
}

/// Makes a volume that lies on the first disk, and leaves it the one that takes no new extents.
async fn volume_on_closed(client: &Client, name: &str, mode: Mode, disks: &[PathBuf; 2]) -> Volume {
    let [first, second] = disks;
    open(first);
    close(second);
    let volume = Volume::create(client, name, mode).await;
    volume.prepared().await;
    open(second);
    close(first);
    assert_eq!(lies_on(&volume), [first.to_str().unwrap()]);
    volume
}

/// The disks that a volume lies on.
fn lies_on(volume: &Volume) -> Vec<String> {
    let mut disks: Vec<String> = report("lvs", "devices", &volume.lv())
        .iter()
        .flat_map(|devices| devices.split(','))
        .map(|device| device.split('(').next().unwrap().to_owned())
        .collect();
    disks.dedup();
    disks
}

#[test]
fn what_is_free_on_it_is_no_capacity_and_a_create_that_needs_it_goes_elsewhere() {
    boot(async |mut client, [first, second]| {
        let all = free_on(&first) + free_on(&second) - RESERVE;
        assert_eq!(client.capacity().await.unwrap(), (all, all));
        close(&second);
        let left = free_on(&first) - RESERVE;
        assert_eq!(client.capacity().await.unwrap(), (left, left), "the very next call");
        for size in [left + EXTENT, all] {
            let answer = client.create("pvc-large", size, Mode::Block).await;
            assert!(client.capacity().await.unwrap().1 < size);
            let words = format!("{} MiB of them on disks that take no new extents", free_on(&second) / MIB);
            refused(answer, Code::ResourceExhausted, &words);
        }
        close(&first);
        open(&second);
        assert_eq!(client.capacity().await.unwrap().1, free_on(&second) - RESERVE);
        close(&second);
        open(&first);
        // Refused by a call that sees the change as the first.
        refused(client.create("pvc-large", all, Mode::Block).await, Code::ResourceExhausted, "no room for");
        let made = client.create("pvc-a", left, Mode::Block).await.unwrap();
        assert_eq!(made.capacity_bytes.cast_unsigned(), left);
        // Until then its preparation has the group's turn, and the room of before is told.
        Volume::existing(&client, "pvc-a", Mode::Block).prepared().await;
        assert_eq!(client.capacity().await.unwrap(), (0, 0));
        open(&second);
        assert_eq!(client.capacity().await.unwrap().0, free_on(&second), "the first has the reserve");
    });
}

#[test]
fn what_is_deleted_from_it_does_not_become_capacity() {
    boot(async |client, disks| {
        let volume = volume_on_closed(&client, "pvc-a", Mode::Block, &disks).await;
        let mut client = client;
        let before = client.capacity().await.unwrap();
        assert_eq!(before.0, free_on(&disks[1]) - RESERVE);
        let free = free_on(&disks[0]);
        volume.delete().await.unwrap();
        assert_eq!(free_on(&disks[0]), free + SIZE, "it lay there");
        assert_eq!(client.capacity().await.unwrap(), before);
        let answer = client.create("pvc-b", before.1 + EXTENT, Mode::Block).await;
        refused(answer, Code::ResourceExhausted, "on disks that take no new extents");
        open(&disks[0]);
        let all = free_on(&disks[0]) + free_on(&disks[1]) - RESERVE;
        assert_eq!(client.capacity().await.unwrap(), (all, all));
    });
}

#[test]
fn volumes_grow_by_what_the_other_disks_have_and_the_reserve() {
    boot(async |client, disks| {
        for mode in [Mode::Ext4, Mode::Block] {
            let volume = volume_on_closed(&client, "pvc-a", mode, &disks).await;
            let most = SIZE + free_on(&disks[1]);
            let words = format!("{} MiB of them on disks that take no new extents", free_on(&disks[0]) / MIB);
            refused(volume.expand(most + EXTENT).await, Code::OutOfRange, &words);
            assert_eq!(volume.expand(most).await.unwrap(), most);
            assert_eq!(lies_on(&volume).len(), 2);
            refused(volume.expand(most + EXTENT).await, Code::OutOfRange, "no room to grow");
            open(&disks[0]);
            assert_eq!(volume.expand(most + EXTENT).await.unwrap(), most + EXTENT);
            volume.delete().await.unwrap();
        }
    });
}

/// The extents of an interrupted expansion, on a disk that was closed since.
#[test]
fn a_raw_volume_that_was_to_grow_on_it_grows_elsewhere_or_not_at_all() {
    boot(async |client, disks| {
        let [first, second] = &disks;
        let volume = volume_on_closed(&client, "pvc-a", Mode::Block, &disks).await;
        let uuid = report("lvs", "lv_uuid", &volume.lv()).remove(0).parse().unwrap();
        let hidden = LvName::for_growth(&uuid);
        let interrupted = || {
            let tags = GrowthTags { target: uuid.clone(), extents: Extents::new((SIZE + 64 * MIB) / EXTENT) };
            let tags: Vec<String> = tags.encode().iter().map(|tag| format!("--addtag={tag}")).collect();
            let mut arguments = vec!["-q", "-y", "-Wn", "-Zn", "-L64M", "-n", hidden.as_str()];
            arguments.extend(tags.iter().map(String::as_str));
            command("lvcreate", &[&arguments[..], &[VG, second.to_str().unwrap()]].concat());
            close(second);
        };
        interrupted();
        let answer = volume.expand(SIZE + 64 * MIB).await;
        refused(answer, Code::OutOfRange, "on disks that take no new extents");
        assert_eq!(report("lvs", "lv_name", VG).len(), 1, "nothing hidden is left");
        open(second);
        interrupted();
        open(first);
        assert_eq!(volume.expand(SIZE + 64 * MIB).await.unwrap(), SIZE + 64 * MIB);
        assert_eq!(lies_on(&volume), [first.to_str().unwrap()]);
        assert_eq!(report("lvs", "lv_name", VG).len(), 1, "nothing hidden is left");
    });
}
