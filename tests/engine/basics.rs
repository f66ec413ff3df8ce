//! What every command does, and how often it commits.

use quarry::lvm::{Backend, Command};
use quarry::types::{Bytes, Extents, PeRange};

use super::support::{create, extend, name, on_disks};

#[test]
fn each_change_makes_exactly_the_commits_that_it_says() {
    on_disks(2, async |bench| {
        let retag = |remove: &str, add: &str| Command::Retag {
            name: name("a"),
            remove: remove.to_owned(),
            add: add.to_owned(),
        };
        let range = PeRange { device: bench.devices[1].display().to_string(), first: 10, last: 11 };
        for command in [
            create("a", 3),
            extend("a", 5),
            Command::Extend { name: name("a"), to: Extents::new(7), from: vec![range] },
            retag("q.s=b", "q.s=f"),
            retag("q.s=b", "q.s=f"),
            Command::Activate(name("a")),
            Command::Refresh(name("a")),
            Command::Volumes,
            Command::Segments(name("a")),
            Command::Remove(name("a")),
        ] {
            let before = bench.seqno().await;
            bench.must(command.clone()).await;
            assert_eq!(bench.seqno().await, before + command.commits(), "{command}");
        }
        bench.end().await;
    });
}

#[test]
fn a_new_volume_is_active_and_has_its_tags_from_the_first_commit() {
    on_disks(1, async |bench| {
        let tags = vec!["q.v=1".to_owned(), "q.n=a!2fb".to_owned(), "q.x=1#2".to_owned()];
        let command = Command::Create { name: name("a"), extents: Extents::new(3), tags: tags.clone() };
        bench.must(command).await;
        let row = bench.volume("a").await;
        let mut sorted = tags;
        sorted.sort();
        assert_eq!(
            (row.tags.clone(), row.size, row.active, row.kind.as_str()),
            (sorted, Bytes::mib(12), true, "linear")
        );
        assert!(!row.open && !row.suspended && !row.partial && !row.origin);
        assert!(row.age().unwrap().as_secs() < 600);
        assert!(std::path::Path::new("/dev/vg0/a").exists());
        bench.end().await;
    });
}

#[test]
fn what_lvm_refuses_is_a_reply_with_its_reason() {
    on_disks(1, async |bench| {
        bench.must(create("a", 3)).await;
        assert!(bench.must_not(create("a", 3)).await.contains("already exists"));
        assert!(bench.must_not(create("b", 3000)).await.contains("insufficient free space"));
        for absent in [extend("b", 1), Command::Volume(name("b")), Command::Remove(name("b"))] {
            assert!(!bench.must_not(absent).await.is_empty());
        }
        let other = "vg1".parse().unwrap();
        let reply = bench.engine.run(&other, &Command::Volumes).await.unwrap();
        assert!(!reply.success && reply.lvs.is_empty() && !reply.messages.is_empty());
        bench.end().await;
    });
}

#[test]
fn a_look_and_a_fingerprint_and_a_flush_and_a_backup() {
    on_disks(2, async |bench| {
        let rows = bench.backend.look().await.unwrap();
        assert_eq!(rows.len(), 2, "{rows:?}");
        let before = bench.backend.fingerprint(&bench.devices).await.unwrap();
        bench.must(create("a", 3)).await;
        let after = bench.backend.fingerprint(&bench.devices).await.unwrap();
        assert_ne!(before, after);
        bench.backend.flush(&bench.devices).await.unwrap();
        bench.backend.back_up(&bench.vg, &bench.devices).await.unwrap();
        bench.end().await;
    });
}
