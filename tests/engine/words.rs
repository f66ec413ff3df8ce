//! What LVM's shell cannot read never reaches it; what could harm there is never said.

use quarry::lvm::{Command, EngineError};
use quarry::types::Extents;

use super::support::{create, name, on_disks, sh, variable};

fn tagged(tags: Vec<String>) -> Command {
    Command::Create { name: name("b"), extents: Extents::new(1), tags }
}

#[test]
fn what_the_shell_could_not_read_is_refused_and_the_shell_goes_on() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        let shell = bench.shell();
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        for bad in [
            tagged(tags(56)),
            tagged(tags(1000)),
            tagged(vec!["naïve".to_owned()]),
            tagged(vec!["a\u{3}b".to_owned()]),
            tagged(vec!["a\u{1b}b".to_owned()]),
            tagged(vec!["a b".to_owned()]),
            tagged(vec!["a\nlvremove --yes vg0/a".to_owned()]),
            tagged(vec!["\"".to_owned()]),
        ] {
            assert!(matches!(bench.ask(&bad).await, Err(EngineError::Unspeakable(_))), "{bad:?}");
            assert_eq!(bench.names().await, ["a"]);
        }
        bench.must(tagged(tags(51))).await;
        assert_eq!(bench.volume("b").await.tags.len(), 51);
        assert_eq!(bench.shell(), shell);
        bench.end().await;
    });
}

#[test]
fn a_long_line_and_every_letter_that_a_tag_may_have_reach_lvm_as_they_are() {
    on_disks(1, async |bench| {
        let odd = "aA0_+.-/=!:&#".to_owned();
        let long = |n: usize| format!("t{n}{}", "x".repeat(900));
        let tags: Vec<String> = (0..40).map(long).chain([odd]).collect();
        bench.must(tagged(tags.clone())).await;
        let mut sorted = tags;
        sorted.sort();
        assert_eq!(bench.volume("b").await.tags, sorted);
        bench.end().await;
    });
}

/// In the engine's own configuration, since the engine itself answers yes beforehand.
#[test]
fn a_prompt_is_answered_no_and_does_not_eat_the_next_command() {
    on_disks(1, async |bench| {
        bench.must(create("a", 1)).await;
        let directory = variable(bench.shell(), "LVM_SYSTEM_DIR").unwrap();
        let lines = "lvremove vg0/a\\nlvs --nolocking --options=lv_name vg0/a\\n";
        let said =
            sh(&format!("printf '{lines}' | LVM_SYSTEM_DIR={directory} LVM_REPORT_FD=1 lvm 2>/dev/null"));
        assert!(said.contains("vg0/a not removed") && said.contains(r#"{"lv_name":"a"}"#), "{said:?}");
        bench.end().await;
    });
}
