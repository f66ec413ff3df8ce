//! A disk that does not answer.

use std::path::PathBuf;
use std::time::Duration;

use quarry::exec::ExecError;
use quarry::lvm::{Backend, Command, EngineError, EngineKind, LocalOptions};

use super::support::{Bench, create, lvms, machine, run, sh, until};

/// Makes `/dev/mapper/disk`, which can be made to hang, and a group on it.
fn make(vg: &str, under: &str) {
    sh(&format!(
        "echo 0 $(blockdev --getsz {under}) linear {under} 0 | dmsetup create disk; vgcreate -q {vg} /dev/mapper/disk"
    ));
}

#[test]
fn a_disk_that_hangs_costs_a_bounded_number_of_processes_and_no_other_group_anything() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        machine(2).boot(|| {
            run(async {
                make("vg1", "/dev/ubda");
                sh("vgcreate -q vg0 /dev/ubdb");
                let query_limit = Duration::from_secs(2);
                let bench = Bench::start(LocalOptions { kind, query_limit, ..LocalOptions::default() }).await;
                let (vg1, hanging) = ("vg1".parse().unwrap(), [PathBuf::from("/dev/mapper/disk")]);
                let engine = bench.backend.open(&vg1, &hanging);
                assert!(engine.run(&vg1, &create("a", 1)).await.unwrap().success);
                sh("dmsetup suspend --noflush --nolockfs disk");
                for _ in 0..4 {
                    let report = engine.run(&vg1, &Command::Group).await;
                    assert!(matches!(report, Err(EngineError::Exec(_))), "{report:?}");
                    let backup = bench.backend.back_up(&vg1, &hanging).await;
                    assert!(matches!(backup, Err(EngineError::Exec(_))), "{backup:?}");
                    bench.must(Command::Group).await;
                }
                assert!(lvms().len() <= 3, "{:?}", lvms());
                let header = bench.backend.fingerprint(&hanging).await;
                assert!(matches!(header, Err(EngineError::Disk { .. })), "{header:?}");
                bench.must(create("b", 1)).await;
                let rows = bench.backend.look().await.unwrap();
                assert!(rows.iter().any(|row| row.vg.as_ref().is_some_and(|vg| vg.name == bench.vg)));
                sh("dmsetup resume disk");
                until("it answers again", || lvms().len() <= 2).await;
                assert!(engine.run(&vg1, &create("b", 1)).await.unwrap().success);
                bench.backend.fingerprint(&hanging).await.unwrap();
                drop(engine);
                bench.end().await;
            });
        });
    }
}

#[test]
fn what_hangs_is_named() {
    machine(2).boot(|| {
        run(async {
            make("vg1", "/dev/ubda");
            sh("vgcreate -q vg0 /dev/ubdb");
            let query_limit = Duration::from_secs(2);
            let options = LocalOptions { query_limit, kind: EngineKind::Process, ..LocalOptions::default() };
            let bench = Bench::start(options).await;
            let (vg1, hanging) = ("vg1".parse().unwrap(), [PathBuf::from("/dev/mapper/disk")]);
            let engine = bench.backend.open(&vg1, &hanging);
            sh("dmsetup suspend --noflush --nolockfs disk");
            let first = engine.run(&vg1, &Command::Group).await;
            assert!(matches!(first, Err(EngineError::Exec(ExecError::Overdue { .. }))), "{first:?}");
            let second = engine.run(&vg1, &Command::Group).await.unwrap_err();
            let EngineError::Exec(ExecError::Start { source, .. }) = &second else { panic!("{second:?}") };
            assert!(source.to_string().contains("a disk that does not answer"), "{source}");
            sh("dmsetup resume disk");
            drop(engine);
            bench.end().await;
        });
    });
}
