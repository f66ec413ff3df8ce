//! How long commands take, against stock LVM in the same guest. A guest flatters the shell: there a
//! process start takes tens of milliseconds.

use std::process::Stdio;
use std::time::{Duration, Instant};

use lab::Machine;
use quarry::lvm::{Backend, Command, EngineKind, LocalOptions};
use quarry::types::{Claim, Extents, FsType, MakeOptions, VolumeMode, VolumeState, VolumeTags};

use super::support::{Bench, create, extend, name, run, sh, shell};

const ROUNDS: usize = 15;

/// `cargo test --test integration -- --ignored --nocapture engine::figures`
#[test]
#[ignore = "it measures, and takes minutes"]
fn what_commands_take() {
    let machine = Machine::new().disk("8G").memory("1G").limit(Duration::from_secs(1800));
    machine.boot(|| {
        run(async {
            let disk = lab::disks()[0].display().to_string();
            sh(&format!("pvcreate -q --metadatasize 16M {disk}; vgcreate -q vg0 {disk}"));
            println!("ms, median of {ROUNDS}");
            println!("LVs   how      create  extend  report 1  report all  group  remove  look  headers");
            for lvs in [0, 100, 1000] {
                fill(lvs).await;
                for (how, kind) in [("shell", EngineKind::Shell), ("process", EngineKind::Process)] {
                    let bench = Bench::start(LocalOptions { kind, ..LocalOptions::default() }).await;
                    bench.names().await;
                    println!("{}", row(lvs, how, &ours(&bench).await));
                    bench.end().await;
                }
                println!("{}", row(lvs, "stock", &stock()));
            }
        });
    });
}

/// Makes volumes that are in use in the group `vg0`, until it has so many LVs: of one extent each, since nobody writes
/// to them.
pub(crate) async fn fill(lvs: usize) {
    let bench = Bench::start(LocalOptions::default()).await;
    for number in bench.names().await.len()..lvs {
        let lv = format!("pvc-00000000-0000-0000-0000-{number:012}");
        let tags = tags(&lv).encode();
        bench.must(Command::Create { name: name(&lv), extents: Extents::new(1), tags }).await;
    }
    bench.end().await;
}

/// What a volume that a cluster has made has for tags.
fn tags(name: &str) -> VolumeTags {
    let claim = Claim { namespace: "production".to_owned(), name: "data-database-0".to_owned() };
    VolumeTags {
        state: VolumeState::Used,
        name: name.parse().unwrap(),
        mode: VolumeMode::Filesystem(FsType::Ext4),
        claim: Some(claim),
        cluster: Some("6e1f3a52-9f0c-4d53-8a43-5d7a2c1b9e10".parse().unwrap()),
        make: MakeOptions::default(),
    }
}

async fn ours(bench: &Bench) -> Vec<Duration> {
    let commands = [
        create("x", 1),
        extend("x", 2),
        Command::Volume(name("x")),
        Command::Volumes,
        Command::Group,
        Command::Remove(name("x")),
    ];
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for command in commands.clone() {
            let begin = Instant::now();
            bench.must(command).await;
            round.push(begin.elapsed());
        }
        let begin = Instant::now();
        bench.backend.look().await.unwrap();
        round.push(begin.elapsed());
        let begin = Instant::now();
        bench.backend.fingerprint(&bench.devices).await.unwrap();
        round.push(begin.elapsed());
        rounds.push(round);
    }
    medians(&rounds)
}

/// As a person or a driver that starts a process per command would do it, on the host's configuration.
fn stock() -> Vec<Duration> {
    let lines = [
        "exec lvcreate -qq -y -Wn -Zn -l1 -n x vg0",
        "exec lvextend -qq -l+1 vg0/x",
        "exec lvs --reportformat json --units b vg0/x",
        "exec lvs --reportformat json --units b vg0",
        "exec vgs --reportformat json --units b vg0",
        "exec lvremove -qq -y vg0/x",
        "exec pvs --reportformat json --units b",
    ];
    let time = |line: &&str| {
        let mut command = shell(line);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let begin = Instant::now();
        assert!(command.status().unwrap().success(), "{line}");
        begin.elapsed()
    };
    let empty: Vec<Duration> = (0..ROUNDS).map(|_| time(&"exec true")).collect();
    let start = median(empty);
    let rounds: Vec<Vec<Duration>> = (0..ROUNDS).map(|_| lines.iter().map(time).collect()).collect();
    // The shell that starts each command is not theirs.
    medians(&rounds).into_iter().map(|time| time.saturating_sub(start / 2)).collect()
}

fn medians(rounds: &[Vec<Duration>]) -> Vec<Duration> {
    let column = |number: usize| median(rounds.iter().map(|round| round[number]).collect());
    (0..rounds[0].len()).map(column).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(lvs: usize, how: &str, times: &[Duration]) -> String {
    let times: Vec<String> = times.iter().map(|time| format!("{:8.1}", time.as_secs_f64() * 1e3)).collect();
    format!("{lvs:<5} {how:<8}{}", times.join(""))
}
