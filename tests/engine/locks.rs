//! Another LVM on the machine holds the group's lock.

use quarry::lvm::{Backend, Command, EngineKind, LocalOptions};

use super::support::{create, lock, lvms, on_disks, sh, until, waits_for_lock};

#[test]
fn reports_answer_and_changes_wait_while_another_holds_the_lock() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        on_disks(1, async |bench| {
            let bench = bench.again(LocalOptions { kind, ..LocalOptions::default() }).await;
            bench.must(create("a", 1)).await;
            let held = lock();
            let command = create("b", 1);
            let mut change = Box::pin(bench.ask(&command));
            let reports = async {
                until("the change waits", || lvms().into_iter().any(waits_for_lock)).await;
                let waiting: Vec<u32> = lvms().into_iter().filter(|pid| waits_for_lock(*pid)).collect();
                for _ in 0..3 {
                    assert_eq!(bench.names().await, ["a"]);
                    bench.must(Command::Group).await;
                }
                bench.backend.look().await.unwrap();
                bench.backend.back_up(&bench.vg, &bench.devices).await.unwrap();
                assert!(waiting.iter().all(|pid| waits_for_lock(*pid)), "the change goes on waiting");
            };
            tokio::select! {
                reply = &mut change => panic!("the change did not wait: {reply:?}"),
                () = reports => {}
            }
            drop(held);
            assert!(change.as_mut().await.unwrap().success);
            drop(change);
            assert_eq!(bench.names().await, ["a", "b"]);
            bench.end().await;
        });
    }
}

#[test]
fn commands_take_the_lock_that_stock_commands_take() {
    on_disks(1, async |bench| {
        bench.must(Command::Group).await;
        let held = lock();
        let command = create("a", 1);
        let change = bench.ask(&command);
        let stock = async {
            until("the change waits", || waits_for_lock(bench.shell())).await;
            drop(held);
        };
        let (reply, ()) = tokio::join!(change, stock);
        assert!(reply.unwrap().success);
        // A report without locking must not make the shell forget its locks.
        assert_eq!(sh("lvs --noheadings -o lv_name vg0"), "a");
        bench.end().await;
    });
}
