//! A change that hangs: everything else is answered in time, and all is well when it ends.

use std::time::{Duration, Instant};

use tonic::{Code, Status};

use super::support::{OTHER, boot, recovers, start};
use crate::driver::{
    Client, Driver, Mode, SIZE, VG, Volume, command, lock_group, lv_of, refused, report, sh, until,
};
use crate::metrics::Scrape;

/// How long callers wait, and with them a lock is held: over a minute. After how long a group counts as stuck is
/// shorter than in life.
const DEADLINE: Duration = Duration::from_secs(65);
const PATIENCE: [&str; 2] = ["--lvm-patience", "20s"];

/// How many threads are enough: some that serve, some that wait for disks, one for each call never.
const MOST_THREADS: usize = 30;

fn threads(driver: &Driver) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", driver.pid())).unwrap().count()
}

/// Waits until no more threads than that are left; those that a burst of calls needed for a moment
/// end when they had nothing to do for ten seconds.
async fn few_threads(driver: &Driver) {
    until("few threads", async || threads(driver) < MOST_THREADS).await;
}

/// A call that runs, its kind, and what came of it after how long.
type Call = tokio::task::JoinHandle<(&'static str, Result<(), Status>, Duration)>;

fn call<T>(kind: &'static str, work: impl Future<Output = Result<T, Status>> + Send + 'static) -> Call {
    let begun = Instant::now();
    tokio::spawn(async move { (kind, work.await.map(drop), begun.elapsed()) })
}

/// Begins a creation, and waits until LVM was asked for it.
async fn sent(driver: &Driver, client: &Client) -> Call {
    let mut creator = client.clone();
    let sent = call("sent", async move { creator.create_in(VG, "pvc-sent", SIZE, Mode::Block).await });
    driver.log().soon(&["running", "lvcreate", lv_of("pvc-sent").as_str()]).await;
    sent
}

fn waiting(calls: &[Call]) -> usize {
    calls.iter().filter(|call| !call.is_finished()).count()
}

/// What a kind of call is to be answered while the group is stuck; `None` for OK.
fn expected(kind: &str) -> Option<Code> {
    match kind {
        "create" => Some(Code::ResourceExhausted),
        "delete" | "expand" => Some(Code::Unavailable),
        "sent" => Some(Code::Aborted),
        _ => None,
    }
}

/// How many calls wait for the group: 26 creations, one of them sent; a deletion and an expansion.
const WAITING: usize = 28;

/// 49 calls of all kinds.
fn many(client: &Client, volumes: &[Volume; 4]) -> Vec<Call> {
    let mut calls = Vec::new();
    for number in 0..25 {
        let mut client = client.clone();
        let (name, there) = (format!("pvc-{number}"), format!("pvc-there-{number}"));
        calls.push(call("create", {
            let mut client = client.clone();
            async move { client.create_in(VG, &name, SIZE, Mode::Block).await }
        }));
        if number < 4 {
            calls.push(call(
                "elsewhere",
                async move { client.create_in(OTHER, &there, SIZE, Mode::Block).await },
            ));
        }
    }
    for number in 0..5 {
        let [used, raw, to_delete, to_expand] = volumes.clone();
        let mut client = client.clone();
        calls.push(call("stats", async move { used.stats().await }));
        calls.push(call("stats", async move { raw.stats().await }));
        calls.push(call("probe", async move { client.probe().await }));
        if number == 0 {
            calls.push(call("delete", async move { to_delete.delete().await }));
            calls.push(call("expand", async move { to_expand.expand(64 << 20).await }));
        }
    }
    calls
}

#[test]
fn while_a_lock_is_held_every_call_is_answered_in_time_and_nothing_is_left_of_it() {
    boot(async || {
        let (driver, client) = start(&PATIENCE).await;
        let client = client.within(DEADLINE);
        let volumes = [
            Volume::in_use(&client, "pvc-used", Mode::Ext4).await,
            Volume::in_use(&client, "pvc-raw", Mode::Block).await,
            Volume::create(&client, "pvc-delete", Mode::Block).await,
            Volume::create(&client, "pvc-expand", Mode::Ext4).await,
        ];
        volumes[2].prepared().await;
        volumes[3].prepared().await;
        let lock = lock_group();
        let mut calls = vec![sent(&driver, &client).await];
        calls.extend(many(&client, &volumes));
        assert!(calls.len() >= 45, "{}", calls.len());
        until("only those wait that need the group", async || waiting(&calls) == WAITING).await;
        few_threads(&driver).await;
        assert_eq!(waiting(&calls), WAITING);
        driver.log().soon(&["lvm does not answer", "the group is stuck"]).await;
        answers_while_stuck(&client, &volumes).await;
        for call in calls {
            let (kind, answer, after) = call.await.unwrap();
            assert!(after < DEADLINE, "{kind}: {after:?} {answer:?}");
            assert_eq!(answer.as_ref().err().map(Status::code), expected(kind), "{kind}: {answer:?}");
        }
        drop(lock);
        is_well_again(&driver, &client, &volumes).await;
    });
}

/// What is answered at once in a stuck group, and how.
async fn answers_while_stuck(client: &Client, volumes: &[Volume; 4]) {
    let begun = Instant::now();
    let mut client = client.clone();
    refused(client.create_in(VG, "pvc-late", SIZE, Mode::Block).await, Code::ResourceExhausted, "is stuck");
    assert_eq!(client.capacity_in(VG).await.unwrap(), (0, 0));
    assert!(client.capacity_in(OTHER).await.unwrap().0 > 0);
    refused(client.create_in(VG, "pvc-sent", SIZE, Mode::Block).await, Code::Aborted, "another operation");
    refused(volumes[0].stage().await, Code::Unavailable, "a hanging lvm command or a held lock");
    assert!(client.probe().await.unwrap());
    for volume in &volumes[..2] {
        volume.stats().await.unwrap();
        volume.end().await;
    }
    let any = client.create("pvc-anywhere", SIZE, Mode::Block).await.unwrap();
    client.delete(&any.volume_id).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// The change that hung is done, and no other was begun.
async fn is_well_again(driver: &Driver, client: &Client, volumes: &[Volume; 4]) {
    recovers(client).await;
    assert!(driver.log().has(&["the group is well again"]));
    client.clone().create_in(VG, "pvc-sent", SIZE, Mode::Block).await.unwrap();
    assert_eq!(report("lvs", "lv_name", VG).len(), 5, "the four of before, and the one that was sent");
    volumes[0].start().await;
    volumes[0].end().await;
    volumes[2].delete().await.unwrap();
    assert_eq!(volumes[3].expand(64 << 20).await.unwrap(), 64 << 20);
    few_threads(driver).await;
}

#[test]
fn an_lvm_that_stands_still_is_waited_for_and_never_doubled() {
    boot(async || {
        let (driver, client) = start(&PATIENCE).await;
        let client = client.within(DEADLINE);
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        let pids = sh("pgrep -x lvm | tr '\\n' ' '");
        sh(&format!("kill -STOP {pids}"));
        let sent = sent(&driver, &client).await;
        driver.log().soon(&["the group is stuck"]).await;
        volume.stats().await.unwrap();
        let mut other = client.clone();
        refused(
            other.create_in(VG, "pvc-late", SIZE, Mode::Block).await,
            Code::ResourceExhausted,
            "is stuck",
        );
        let (_, answer, _) = sent.await.unwrap();
        refused(answer, Code::Aborted, "asking again joins it");
        sh(&format!("kill -CONT {pids}"));
        recovers(&client).await;
        other.create_in(VG, "pvc-sent", SIZE, Mode::Block).await.unwrap();
        assert_eq!(report("lvs", "lv_name", VG).len(), 2);
    });
}

#[test]
fn a_creation_whose_group_is_full_when_its_turn_comes_goes_to_another() {
    boot(async || {
        let address = "127.0.0.1:9809";
        let (driver, client) = start(&["--health-address", address]).await;
        let volume = Volume::create(&client, "pvc-a", Mode::Block).await;
        volume.prepared().await;
        command("lvcreate", &["-q", "-y", "-an", "-n", "theirs", "-L", "100M", OTHER]);
        let rooms = async || {
            let mut client = client.clone();
            (client.capacity_in(VG).await.unwrap().0, client.capacity_in(OTHER).await.unwrap().0)
        };
        let (here, there) = rooms().await;
        assert!(here > there, "{here} {there}");
        let lock = lock_group();
        let deletion = tokio::spawn(async move { volume.delete().await });
        driver.log().soon(&["running", "lvremove"]).await;
        sh(&format!("lvcreate --nolocking -q -y -an -n filler -l 100%FREE {VG}"));
        let creation = tokio::spawn({
            let mut client = client.clone();
            async move { client.create("pvc-b", 64 << 20, Mode::Block).await }
        });
        until("the creation waits for its turn", async || {
            Scrape::of(address.parse().unwrap()).await.value("quarry_vg_writers_waiting", &[("vg", VG)]) > 0.0
        })
        .await;
        drop(lock);
        deletion.await.unwrap().unwrap();
        let made = creation.await.unwrap().unwrap();
        let other = report("vgs", "vg_uuid", OTHER).remove(0);
        assert!(made.volume_id.starts_with(&other), "{}", made.volume_id);
    });
}

#[test]
fn the_driver_and_an_administrator_work_beside_each_other() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let administrator = tokio::task::spawn_blocking(|| {
            for _ in 0..8 {
                command("lvcreate", &["-q", "-y", "-n", "theirs", "-L", "8M", VG]);
                report("lvs", "lv_name", VG);
                command("lvremove", &["-q", "-y", &format!("{VG}/theirs")]);
            }
        });
        let ours: Vec<_> = (0..8)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let volume = Volume::create(&client, &format!("pvc-{number}"), Mode::Ext4).await;
                    volume.start().await;
                    volume.end().await;
                    volume.delete().await.unwrap();
                })
            })
            .collect();
        for task in ours {
            task.await.unwrap();
        }
        administrator.await.unwrap();
        until("nothing is left", async || report("lvs", "lv_name", VG).is_empty()).await;
    });
}
