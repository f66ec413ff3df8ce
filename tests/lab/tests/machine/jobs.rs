//! Commands in a guest, as `lab run` uses it.

use std::fs;
use std::time::{Duration, Instant};

use lab::{End, Error, Job, Machine, Streams};
use nix::sys::signal::{Signal, kill};

use crate::run;
use crate::runner::Runner;

#[test]
fn the_jobs_exit_status_and_streams_come_back_unchanged() {
    let finished = run(&Machine::new(), "printf 'a\\n\\000\\377b'; printf 'c\\n' >&2; exit 7").unwrap();
    assert_eq!(finished.end, End::Exited(7));
    assert_eq!(finished.output.stdout, b"a\n\0\xffb");
    assert_eq!(finished.output.stderr, b"c\n");
}

#[test]
fn much_output_comes_back_whole() {
    let finished = run(&Machine::new(), "seq 200000").unwrap();
    assert_eq!(finished.output.stdout.len(), 1_288_895, "the length of the numbers and their line ends");
}

#[test]
fn a_job_that_a_signal_ended_has_the_status_that_a_shell_gives_it() {
    assert_eq!(run(&Machine::new(), "kill -9 $$").unwrap().end, End::Exited(137));
}

#[test]
fn a_program_that_does_not_exist_has_the_status_that_a_shell_gives_it() {
    let job = Job::new(["/no/such/program"]).unwrap();
    let finished = Machine::new().start(job, Streams::Capture).unwrap().wait().unwrap();
    assert_eq!(finished.end, End::Exited(127));
    assert!(String::from_utf8_lossy(&finished.output.stderr).contains("/no/such/program"));
}

#[test]
fn a_daemon_that_the_job_leaves_behind_does_not_hold_up_its_end() {
    let started = Instant::now();
    assert_eq!(run(&Machine::new(), "sleep 1000 & exit 3").unwrap().end, End::Exited(3));
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn the_time_limit_kills_the_guest_and_keeps_its_output() {
    let error = run(&Machine::new().limit(Duration::from_secs(5)), "echo begun; sleep 1000").unwrap_err();
    let Error::TimedOut { output, .. } = error else { panic!("{error}") };
    assert_eq!(output.stdout, b"begun\n");
}

#[test]
fn a_kernel_that_stands_still_is_a_failure_of_its_own_kind() {
    let runner = Runner::start(&["--limit", "4s"]);
    for pid in runner.pids_of("linux.uml") {
        kill(pid, Signal::SIGSTOP).unwrap();
    }
    let (status, errors) = runner.end();
    assert_eq!(status.code(), Some(125));
    assert!(errors.contains("the guest hung"), "{errors}");
}

#[test]
fn a_kernel_that_panics_is_a_failure_of_its_own_kind() {
    let error = run(&Machine::new(), "echo begun; sleep 0.1; echo c > /proc/sysrq-trigger").unwrap_err();
    let Error::Died { kernel_log, output } = error else { panic!("{error}") };
    assert!(kernel_log.contains("Kernel panic"), "{kernel_log}");
    assert_eq!(output.stdout, b"begun\n");
}

#[test]
fn nothing_that_a_guest_writes_reaches_the_host_but_what_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, shared) = (folder.path().join("kept"), folder.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let command =
        format!("echo lost > {0} && echo found > {1}/file && cat {0}", kept.display(), shared.display());
    let finished = run(&Machine::new().share(&shared), &command).unwrap();
    assert_eq!((finished.end, finished.output.stdout.as_slice()), (End::Exited(0), b"lost\n".as_slice()));
    assert!(!kept.exists());
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "found\n");
}
