//! The lab's own tests: what a guest does with a job, and that the test functions in a guest are what they seem.
//!
//! That this file is an integration test makes cargo build the `lab` binary, which all guests need.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed step is a failed test")]
#![expect(clippy::disallowed_methods, reason = "these tests are about starting programs")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::{End, Error, Finished, Job, Machine, Streams};

/// How long anything in a guest may take to show.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(machine: &Machine, command: &str) -> Result<Finished, Error> {
    machine.start(Job::new(["sh", "-c", command])?, Streams::Capture)?.wait()
}

/// Runs a program that has to succeed, and returns what it wrote.
#[track_caller]
fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

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

#[test]
fn lvm_works() {
    Machine::new().disk("1G").boot(|| {
        let disk = lab::disks().remove(0);
        must("vgcreate", &["vg", disk.to_str().unwrap()]);
        must("lvcreate", &["-L", "64M", "-n", "lv", "vg"]);
        must("mkfs.ext4", &["-q", "/dev/vg/lv"]);
        must("mount", &["/dev/vg/lv", "/mnt"]);
        fs::write("/mnt/file", "content").unwrap();
        must("lvextend", &["-r", "-L", "128M", "vg/lv"]);
        for target in ["dm-snapshot", "dm-thin-pool", "dm-raid", "dm-flakey", "dm-log-writes"] {
            must("modprobe", &[target]);
        }
        must("lvcreate", &["-s", "-L", "16M", "-n", "snap", "vg/lv"]);
        assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    });
}

#[test]
fn udev_runs_only_when_it_is_asked_for() {
    Machine::new().disk("100M").udev().boot(|| {
        assert!(std::env::var_os("DM_DISABLE_UDEV").is_none());
        must("vgcreate", &["vg", "/dev/ubda"]);
        must("lvcreate", &["-L", "8M", "-n", "lv", "vg"]);
        assert!(fs::read_link("/dev/mapper/vg-lv").is_ok(), "udev makes links where LVM alone makes nodes");
        must("udevadm", &["info", "/dev/mapper/vg-lv"]);
    });
    Machine::new().boot(|| {
        assert_eq!(std::env::var("DM_DISABLE_UDEV").unwrap(), "1");
        assert!(!Path::new("/run/udev").exists());
    });
}

#[test]
fn the_root_is_the_guests_own() {
    Machine::new().boot(|| {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(table.lines().next().unwrap().contains(" / / rw,relatime - overlay "), "{table}");
        assert!(Path::new("/sys/fs/cgroup/cgroup.controllers").exists());
        let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(local.local_addr().unwrap()).unwrap();
    });
}

#[test]
fn disks_keep_their_content_from_boot_to_boot() {
    let machine = Machine::new().disk("100M").disk("100M").env("COLOUR", "blue");
    machine.boot(|| {
        assert_eq!(lab::disks(), ["/dev/ubda", "/dev/ubdb"].map(PathBuf::from));
        must("mkfs.ext4", &["-q", "/dev/ubdb"]);
        must("mount", &["/dev/ubdb", "/mnt"]);
        // Not synced: a machine that is turned off in good order loses nothing.
        fs::write("/mnt/file", "content").unwrap();
    });
    machine.boot(|| {
        assert_eq!(std::env::var("COLOUR").unwrap(), "blue");
        assert!(must("dumpe2fs", &["-h", "/dev/ubdb"]).contains("Filesystem state:         clean"));
        must("mount", &["/dev/ubdb", "/mnt"]);
        assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    });
}

#[test]
fn a_power_cut_loses_what_was_not_synced_and_nothing_else() {
    let machine = Machine::new().disk("100M").disk("100M");
    machine.boot_until_power_cut(|| {
        let mut synced = File::options().write(true).open("/dev/ubda").unwrap();
        synced.write_all(b"synced").unwrap();
        synced.sync_all().unwrap();
        let mut cached = File::options().write(true).open("/dev/ubdb").unwrap();
        cached.write_all(b"cached").unwrap();
        // Closing the last descriptor of a disk would write it out.
        std::mem::forget(cached);
        lab::power_cut();
    });
    machine.boot(|| {
        assert_eq!(fs::read("/dev/ubda").unwrap()[..6], *b"synced");
        assert_eq!(fs::read("/dev/ubdb").unwrap()[..6], [0; 6]);
    });
}

#[test]
fn the_host_can_cut_the_power() {
    let machine = Machine::new().disk("100M");
    machine.boot_with(
        |host| {
            host.wait_for("written", PATIENCE).unwrap();
            host.cut_power().unwrap();
        },
        || {
            let mut disk =
                File::options().write(true).custom_flags(nix::libc::O_DSYNC).open("/dev/ubda").unwrap();
            disk.write_all(b"synced").unwrap();
            lab::tell("written").unwrap();
            std::thread::sleep(PATIENCE);
        },
    );
    machine.boot(|| assert_eq!(fs::read("/dev/ubda").unwrap()[..6], *b"synced"));
}

#[test]
fn disks_can_be_added_and_pulled_while_the_guest_runs() {
    let machine = Machine::new().disk("100M");
    machine.boot_with(
        |host| {
            host.wait_for("up", PATIENCE).unwrap();
            let disk = host.add_disk("64M").unwrap();
            assert_eq!(disk, Path::new("/dev/ubdb"));
            host.wait_for("used", PATIENCE).unwrap();
            host.remove_disk(&disk).unwrap();
            host.tell("pulled").unwrap();
        },
        || {
            lab::tell("up").unwrap();
            wait_until("the new disk is there", || Path::new("/dev/ubdb").exists());
            must("pvcreate", &["/dev/ubdb"]);
            lab::tell("used").unwrap();
            lab::wait_for("pulled", PATIENCE).unwrap();
            wait_until("the disk is gone", || !Path::new("/dev/ubdb").exists());
        },
    );
}

/// Runs one of the tests below, which have to fail, and returns what it printed.
#[track_caller]
fn must_fail(test: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--exact", test, "--ignored", "--test-threads=1"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && text.contains("1 failed"), "{text}");
    text
}

#[test]
fn a_closure_that_panics_fails_the_test_and_shows_the_guests_output() {
    let text = must_fail("fails_because_its_closure_panics");
    assert!(text.contains("said before the end") && text.contains("the reason of it all"), "{text}");
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_its_closure_panics() {
    Machine::new().boot(|| {
        std::io::stdout().write_all(b"said before the end\n").unwrap();
        panic!("the reason of it all");
    });
}

#[test]
fn a_guest_that_runs_no_closure_fails_the_test() {
    assert!(
        must_fail("fails_because_its_closure_never_runs")
            .contains("the guest did not run the test's closure")
    );
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_its_closure_never_runs() {
    if !lab::is_guest() {
        Machine::new().boot(|| ());
    }
}

#[test]
fn a_power_cut_that_does_not_come_fails_the_test() {
    assert!(must_fail("fails_because_the_power_stays_on").contains("the power should have been cut"));
}

#[test]
#[ignore = "has to fail; another test runs it"]
fn fails_because_the_power_stays_on() {
    Machine::new().boot_until_power_cut(|| ());
}

/// The lab's processes that name this folder on their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let wanted = folder.to_str().unwrap();
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(read);
    all.filter(|line| line.contains(wanted)).collect()
}

/// Starts `lab run` in a temporary folder of its own and waits until the guest's job runs.
fn start_runner(folder: &Path) -> std::process::Child {
    let (ready, share) = (folder.join("ready"), folder.to_str().unwrap());
    let job = format!("touch {} && sleep 1000", ready.display());
    let runner = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["run", "--share", share, "--", "sh", "-c", &job])
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the job runs", || ready.exists());
    runner
}

/// How many folders of runs are left.
fn folders_in(temporary: &Path) -> usize {
    let root = temporary.join(format!("quarry-lab-{}", nix::unistd::getuid()));
    fs::read_dir(root).unwrap().flatten().filter(|entry| entry.path().is_dir()).count()
}

#[test]
fn a_runner_that_is_killed_leaves_no_process_and_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = start_runner(folder.path());
    runner.kill().unwrap();
    runner.wait().unwrap();
    wait_until("all processes are gone", || processes_of(folder.path()).is_empty());
    wait_until("the run's folder is gone", || folders_in(folder.path()) == 0);
}

#[test]
fn a_supervisor_that_is_killed_leaves_no_process_and_the_next_run_removes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = start_runner(folder.path());
    must("pkill", &["-KILL", "--parent", &runner.id().to_string()]);
    assert_eq!(runner.wait().unwrap().code(), Some(125), "the lab's own failure");
    wait_until("all processes are gone", || processes_of(folder.path()).is_empty());
    assert_eq!(folders_in(folder.path()), 0, "the runner removes its folder");
}
