//! Shells that die, stand still, wear out or do not answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use quarry::exec::ExecError;
use quarry::lvm::{Backend, Command, EngineError, LocalOptions};
use quarry::types::Bytes;

use super::support::{create, extend, lock, lvms, name, on_disks, sh, signal, until, waits_for_lock};

#[test]
fn a_shell_that_was_killed_at_rest_is_replaced_unnoticed() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        for command in [create("b", 1), Command::Volumes, extend("a", 2)] {
            let shell = bench.shell();
            signal(shell, Signal::SIGKILL);
            // A command that comes while it dies may have reached it.
            until("the shell has ended", || has_ended(shell)).await;
            bench.must(command).await;
            assert_ne!(bench.shell(), shell);
        }
        bench.end().await;
    });
}

#[test]
fn a_change_whose_shell_was_killed_is_lost_and_the_next_one_works() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        let (held, shell) = (lock(), bench.shell());
        let killer = async {
            until("the change waits for the lock", || waits_for_lock(shell)).await;
            signal(shell, Signal::SIGKILL);
        };
        let command = create("b", 1);
        let (reply, ()) = tokio::join!(bench.ask(&command), killer);
        assert!(
            matches!(&reply, Err(EngineError::Lost { reason, .. }) if reason.contains("signal: 9")),
            "{reply:?}"
        );
        drop(held);
        bench.must(create("b", 1)).await;
        assert_eq!(bench.names().await, ["a", "b"]);
        bench.end().await;
    });
}

#[test]
fn a_report_whose_shell_was_killed_is_asked_again() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        let shell = bench.shell();
        signal(shell, Signal::SIGSTOP);
        let killer = async {
            until("the report has been sent", || pending(shell)).await;
            signal(shell, Signal::SIGKILL);
        };
        let (names, ()) = tokio::join!(bench.names(), killer);
        assert_eq!(names, ["a"]);
        bench.end().await;
    });
}

/// Whether the process has ended, whether or not somebody has asked how.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// Whether something stands in the pipe that is the process's standard input.
fn pending(pid: u32) -> bool {
    use std::os::fd::AsFd;
    let input = std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap();
    let mut polled = [nix::poll::PollFd::new(input.as_fd(), nix::poll::PollFlags::POLLIN)];
    nix::poll::poll(&mut polled, 0u8).unwrap() == 1
}

#[test]
fn a_report_that_takes_too_long_ends_its_shell_and_the_next_one_works() {
    on_disks(1, async |bench| {
        let limit = Duration::from_millis(800);
        let bench = bench.again(LocalOptions { query_limit: limit, ..LocalOptions::default() }).await;
        bench.must(create("a", 1)).await;
        let shell = bench.shell();
        signal(shell, Signal::SIGSTOP);
        let reply = bench.ask(&Command::Group).await;
        assert!(matches!(reply, Err(EngineError::Exec(ExecError::Overdue { .. }))), "{reply:?}");
        assert_eq!(bench.seqno().await, 2);
        until("the old shell is gone", || !lvms().contains(&shell)).await;
        bench.end().await;
    });
}

#[test]
fn a_shell_that_stands_still_holds_up_no_other_group_and_no_report() {
    on_disks(2, async |bench| {
        sh("vgreduce -q vg0 /dev/ubdb");
        sh("vgcreate -q vg1 /dev/ubdb");
        let other = bench.backend.open(&"vg1".parse().unwrap(), &bench.devices[1..]);
        let bench_devices = bench.devices[..1].to_vec();
        let engine = bench.backend.open(&bench.vg, &bench_devices);
        assert!(engine.run(&bench.vg, &create("a", 1)).await.unwrap().success);
        let shell = bench.shell();
        signal(shell, Signal::SIGSTOP);
        let change = tokio::spawn({
            let (engine, vg) = (Arc::clone(&engine), bench.vg.clone());
            async move { engine.run(&vg, &create("b", 1)).await }
        });
        until("the change has been sent", || pending(shell)).await;
        let vg1 = "vg1".parse().unwrap();
        assert!(other.run(&vg1, &create("c", 1)).await.unwrap().success);
        let reply = engine.run(&bench.vg, &Command::Volumes).await.unwrap();
        assert_eq!(reply.lvs.len(), 1);
        bench.backend.fingerprint(&bench_devices).await.unwrap();
        bench.backend.look().await.unwrap();
        assert!(!change.is_finished());
        signal(shell, Signal::SIGCONT);
        assert!(change.await.unwrap().unwrap().success);
        drop((engine, other));
        bench.end().await;
    });
}

#[test]
fn a_shell_is_replaced_after_so_many_commands() {
    on_disks(1, async |bench| {
        let bench = bench.again(LocalOptions { commands_per_shell: 10, ..LocalOptions::default() }).await;
        let mut shells = BTreeSet::new();
        for number in 0..35 {
            bench.must(create(&format!("v{number}"), 1)).await;
            shells.extend(lvms());
        }
        assert!((3..=4).contains(&shells.len()), "{shells:?}");
        assert_eq!(bench.names().await.len(), 35);
        until("old shells are gone", || lvms().len() <= 1).await;
        bench.end().await;
    });
}

#[test]
fn a_shell_is_replaced_when_it_has_grown() {
    on_disks(1, async |bench| {
        let bench =
            bench.again(LocalOptions { memory_per_shell: Bytes::new(1), ..LocalOptions::default() }).await;
        bench.must(create("a", 1)).await;
        let first = bench.shell();
        for _ in 0..254 {
            bench.must(Command::Group).await;
        }
        assert_eq!(bench.shell(), first);
        bench.must(Command::Group).await;
        bench.must(Command::Volume(name("a"))).await;
        until("the old shell is gone", || !lvms().contains(&first)).await;
        assert_ne!(bench.shell(), first);
        bench.end().await;
    });
}
