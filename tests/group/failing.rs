//! A disk that returns errors, or answers nothing, under LVM's commands and under a mounted volume.

use std::time::Duration;

use tonic::Code;

use super::support::{Does, FICKLE, OTHER, announce, make_disk, make_fickle, now, recovers, start};
use crate::driver::{
    self, Client, Driver, Mode, SIZE, VG, Volume, command, make_group, refused, report, sh, until,
};

/// How long a call may take that nobody can answer.
const PATIENT: Duration = Duration::from_secs(20);

/// Boots a machine with [`VG`] on a disk that can fail, and [`OTHER`] on one that does not.
fn boot(body: impl AsyncFnOnce(Driver, Client)) {
    lab::Machine::new().disk("1G").disk("512M").boot(|| {
        make_fickle(VG);
        make_group(OTHER, &lab::disks()[1..]);
        driver::run(async {
            let arguments = ["--volume-group", VG, "--volume-group", OTHER, "--lvm-patience", "5s"];
            let driver = Driver::start_with(&arguments).await;
            let client = driver.client().await;
            body(driver, client).await;
        });
    });
}

/// Lets the disk serve again, which the kernel tells of.
fn serve() {
    now(Does::Serve);
    announce(&lab::disks()[0]);
}

/// Volumes of each kind with something in them, all of them in use.
async fn in_use(client: &Client) -> Vec<Volume> {
    let mut volumes = Vec::new();
    for mode in [Mode::Ext4, Mode::Xfs, Mode::Block] {
        let request = client.clone().create_in(VG, mode.word(), mode.size(), mode).await.unwrap();
        let volume = Volume::existing(client, mode.word(), mode);
        assert_eq!(volume.id, request.volume_id);
        volume.start().await;
        if mode != Mode::Block {
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
        }
        volumes.push(volume);
    }
    sh("sync");
    volumes
}

/// All that is known of the LVs of [`VG`] without asking their devices.
fn recorded() -> Vec<String> {
    report("lvs", "lv_name,lv_uuid,lv_size,lv_tags", VG)
}

/// Demands that nothing can be changed in [`VG`], and that the other group goes on.
async fn changes_are_refused(client: &Client, volumes: &[Volume], unused: &Volume) {
    let mut client = client.within(PATIENT);
    let refusals = [
        client.create_in(VG, "pvc-never", SIZE, Mode::Block).await.map(drop),
        unused.with(&client).delete().await,
        volumes[0].with(&client).grow_by(1).await.map(drop),
    ];
    for refusal in refusals {
        let code = refusal.expect_err("a disk that cannot be written was changed").code();
        let may_come_again = [
            Code::Unavailable,
            Code::Internal,
            Code::ResourceExhausted,
            Code::Aborted,
            Code::DeadlineExceeded,
        ];
        assert!(may_come_again.contains(&code), "{code:?}");
    }
    until("no room is offered", async || client.clone().capacity_in(VG).await.unwrap().0 == 0).await;
    assert!(client.probe().await.unwrap());
    let there = client.create_in(OTHER, "pvc-there", SIZE, Mode::Block).await.unwrap();
    client.delete(&there.volume_id).await.unwrap();
}

/// Demands that all is as it was, and that everything goes on.
async fn all_is_well(client: &Client, before: &[String], volumes: &[Volume], unused: &Volume) {
    recovers(client).await;
    assert_eq!(recorded(), before, "nothing was made, removed or changed");
    for volume in volumes {
        volume.end().await;
        volume.start().await;
        if volume.mode != Mode::Block {
            assert_eq!(std::fs::read_to_string(volume.target.join("marker")).unwrap(), "kept");
        }
        volume.end().await;
        assert_eq!(volume.grow_by(1).await.unwrap(), volume.size_and(1));
    }
    unused.delete().await.unwrap();
    recovers(client).await;
    assert_eq!(report("lvs", "lv_name", VG).len(), volumes.len());
}

#[test]
fn a_disk_that_returns_errors_costs_nothing_that_was_there_and_all_goes_on_when_it_is_back() {
    boot(async |_driver, client| {
        let volumes = in_use(&client).await;
        let unused = Volume::create(&client, "pvc-unused", Mode::Ext4).await;
        unused.prepared().await;
        let before = recorded();
        now(Does::Fail);
        changes_are_refused(&client, &volumes, &unused).await;
        for volume in &volumes[..2] {
            // The file systems notice too.
            let _ = std::fs::write(volume.target.join("lost"), vec![1; 1 << 20]);
            let _ = std::process::Command::new("sync").arg("-f").arg(&volume.target).output();
        }
        serve();
        all_is_well(&client, &before, &volumes, &unused).await;
    });
}

#[test]
fn a_disk_that_answers_nothing_holds_up_its_own_group_only_and_what_was_asked_is_done_once_at_most() {
    boot(async |_driver, client| {
        let volumes = in_use(&client).await;
        let unused = Volume::create(&client, "pvc-unused", Mode::Ext4).await;
        unused.prepared().await;
        let before = recorded();
        command("dmsetup", &["suspend", "--noflush", "--nolockfs", "fickle"]);
        let given_up =
            client.within(Duration::from_secs(2)).create_in(VG, "pvc-sent", SIZE, Mode::Block).await;
        assert!(given_up.is_err());
        changes_are_refused(&client, &volumes, &unused).await;
        serve();
        recovers(&client).await;
        // Whether the one that was sent was done is found out by asking again.
        let sent = client.clone().create_in(VG, "pvc-sent", SIZE, Mode::Block).await.unwrap();
        assert_eq!(report("lvs", "lv_name", VG).len(), before.len() + 1);
        client.clone().delete(&sent.volume_id).await.unwrap();
        all_is_well(&client, &before, &volumes, &unused).await;
    });
}

/// The disk [`FICKLE`] under another one: what it does not answer a look waits for, since the one above is not
/// suspended itself.
const ABOVE: &str = "/dev/mapper/above";

#[test]
fn a_disk_that_even_a_look_hangs_on_holds_up_no_volume_for_which_another_group_will_do() {
    lab::Machine::new().disk("1G").disk("512M").boot(|| {
        make_disk();
        let sectors = sh(&format!("blockdev --getsz {FICKLE}")).trim().parse::<u64>().unwrap() - 2048;
        command("dmsetup", &["create", "above", "--table", &format!("0 {sectors} linear {FICKLE} 2048")]);
        make_group(VG, &[ABOVE.into()]);
        make_group(OTHER, &lab::disks()[1..]);
        driver::run(async {
            let (_driver, client) = start(&[]).await;
            let client = client.within(Duration::from_secs(240));
            let here = client.clone().create("pvc-here", SIZE, Mode::Block).await.unwrap();
            Volume::existing(&client, "pvc-here", Mode::Block).prepared().await;
            command("dmsetup", &["suspend", "--noflush", "--nolockfs", "fickle"]);
            goes_elsewhere(&client, &here.volume_id).await;
            command("dmsetup", &["resume", "fickle"]);
            recovers(&client).await;
            let again = client.clone().create("pvc-here", SIZE, Mode::Block).await.unwrap();
            assert_eq!(again.volume_id, here.volume_id);
            assert_eq!((report("lvs", "lv_name", VG).len(), report("lvs", "lv_name", OTHER).len()), (1, 3));
        });
    });
}

/// Demands that what may be made anywhere is made in [`OTHER`], but not a second time.
async fn goes_elsewhere(client: &Client, here: &str) {
    let made = (0..3).map(|number| {
        let mut client = client.clone();
        tokio::spawn(async move { client.create(&format!("pvc-{number}"), SIZE, Mode::Block).await })
    });
    for made in made.collect::<Vec<_>>() {
        let id = made.await.unwrap().unwrap().volume_id;
        assert_ne!(id.split('/').next(), here.split('/').next());
    }
    let mut client = client.clone();
    refused(client.create("pvc-here", SIZE, Mode::Block).await, Code::Unavailable, "");
    let (room, _) = client.capacity_in(OTHER).await.unwrap();
    assert_eq!(client.capacity().await.unwrap(), (room, room));
}
