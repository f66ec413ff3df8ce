//! Jobs without a guest. These tests run inside one, which is their host.

use std::path::Path;
use std::process::{Command, Output};

use lab::Machine;

use crate::must;

/// Runs `lab run --on-host` and returns what became of it.
fn lab_on_host(options: &[&str], command: &str) -> Output {
    let lab = env!("CARGO_BIN_EXE_lab");
    Command::new(lab)
        .args(["run", "--on-host"])
        .args(options)
        .args(["--", "sh", "-c", command])
        .output()
        .unwrap()
}

fn loop_devices() -> String {
    must("losetup", &["--list", "--noheadings"])
}

#[test]
fn a_job_has_loop_devices_as_its_disks_and_leaves_none() {
    Machine::new().boot(|| {
        must("modprobe", &["loop"]);
        let output = lab_on_host(
            &["--disk", "100M", "--disk", "100M"],
            "echo $LAB_DISKS; vgcreate -q vg $(echo $LAB_DISKS | tr : ' ') >&2 && lvcreate -q -L 8M -n lv vg >&2; exit 7",
        );
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(7), "{stderr}");
        assert!(stdout.starts_with("/dev/loop"), "{stdout}");
        assert!(stderr.contains("\"lv\" created"), "{stderr}");
        assert_eq!(loop_devices(), "");
    });
}

#[test]
fn the_time_limit_holds() {
    Machine::new().boot(|| {
        let output = lab_on_host(&["--limit", "300ms"], "echo begun; sleep 1000");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), b"begun\n".as_slice()));
    });
}

#[test]
fn a_host_without_device_mapper_is_refused() {
    Machine::new().boot(|| {
        std::fs::remove_file("/dev/mapper/control").unwrap();
        let output = lab_on_host(&[], "true");
        assert_eq!(output.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&output.stderr).contains("a working device mapper"));
    });
}

#[test]
fn a_host_without_the_guests_kernel_is_told_what_installs_it() {
    Machine::new().boot(|| {
        std::fs::remove_file("/usr/bin/linux.uml").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_lab")).args(["run", "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("linux.uml is missing; `make setup` installs it"), "{text}");
    });
}

#[test]
fn test_functions_can_run_on_the_host_too() {
    Machine::new().boot(|| {
        must("modprobe", &["loop"]);
        let own = std::env::current_exe().unwrap();
        let output = Command::new(own)
            .args(["--exact", "on_host::keeps_its_disk_from_boot_to_boot", "--ignored"])
            .env("LAB_ON_HOST", "1")
            .env_remove("LAB_STEP")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        assert_eq!(loop_devices(), "");
    });
}

#[test]
#[ignore = "wants a host with device mapper; another test runs it"]
fn keeps_its_disk_from_boot_to_boot() {
    let machine = Machine::new().disk("100M");
    machine.boot(|| {
        let disk = lab::disks().remove(0);
        assert!(disk.starts_with("/dev") && disk != Path::new("/dev/ubda"));
        must("vgcreate", &["vg", disk.to_str().unwrap()]);
        must("lvcreate", &["-L", "8M", "-n", "lv", "vg"]);
    });
    machine.boot(|| assert!(must("lvs", &["--noheadings", "vg"]).contains("lv")));
}
