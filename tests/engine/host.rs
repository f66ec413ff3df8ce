//! The host's own configuration, environment and udev.

use std::fs;

use quarry::lvm::{Backend, Command, EngineKind, Health, LocalOptions, sightings};

use super::support::{Bench, create, extend, lvms, machine, name, on_disks, on_machine, run, sh, variable};

/// All that a host could have set to make our answers different.
const HOSTILE: &str = r#"
devices { filter=["r|.*|"] global_filter=["r|.*|"] use_devicesfile=1 }
global { units="H" suffix=1 locking_dir="/nowhere" use_lvmpolld=1 }
log { prefix="LVM says: " command_names=1 verbose=1 }
backup { backup=1 archive=1 }
activation { monitoring=1 volume_list=["nothing"] }
report { output_format="basic" compact_output=1 list_item_separator=";" time_format="%c" }
"#;

async fn works(bench: &Bench) {
    let seen = sightings(&bench.backend.look().await.unwrap(), bench.backend.system_id());
    assert_eq!((seen.len(), &seen[0].health), (1, &Health::Healthy));
    for _ in 0..3 {
        bench.must(create("a", 3)).await;
        bench.must(extend("a", 5)).await;
        let row = bench.volume("a").await;
        assert!(row.active && row.created.is_some() && row.tags == ["q.s=b"], "{row:?}");
        assert!(!bench.must_not(create("a", 1)).await.is_empty());
        bench.must(Command::Activate(name("a"))).await;
        bench.must(Command::Remove(name("a"))).await;
        assert!(!std::path::Path::new("/dev/vg0/a").exists());
    }
}

#[test]
fn a_hostile_configuration_of_the_host_changes_nothing() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        on_disks(1, async |bench| {
            fs::create_dir_all("/etc/lvm").unwrap();
            fs::write("/etc/lvm/lvm.conf", HOSTILE).unwrap();
            let bench = bench.again(LocalOptions { kind, ..LocalOptions::default() }).await;
            works(&bench).await;
            bench.end().await;
            let daemons = sh("ps -e -o comm=");
            assert!(!daemons.contains("dmeventd") && !daemons.contains("lvmpolld"), "{daemons}");
        });
    }
}

#[test]
fn every_setting_of_ours_is_one_that_lvm_knows() {
    on_disks(1, async |bench| {
        bench.must(Command::Group).await;
        let directory = variable(bench.shell(), "LVM_SYSTEM_DIR").unwrap();
        let checked = sh(&format!(
            "LVM_SYSTEM_DIR={directory} lvm lvmconfig --validate --config 'config/checks=1 log/silent=0' 2>&1"
        ));
        assert!(checked.contains("LVM configuration valid"), "{checked}");
        bench.end().await;
    });
}

#[test]
fn the_environment_and_the_locale_of_the_driver_do_not_reach_lvm() {
    let machine =
        machine(1).env("LC_ALL", "de_DE.UTF-8").env("LANG", "de_DE.UTF-8").env("LVM_SYSTEM_DIR", "/x");
    let machine = machine.env("LVM_COMMAND_PROFILE", "nope").env("DM_DISABLE_UDEV", "0");
    machine.boot(|| {
        run(async {
            sh(&format!(
                "LVM_SYSTEM_DIR= LVM_COMMAND_PROFILE= DM_DISABLE_UDEV=1 vgcreate -q vg0 {}",
                lab::disks()[0].display()
            ));
            let bench = Bench::start(LocalOptions::default()).await;
            works(&bench).await;
            let shell = bench.shell();
            for (variable_name, value) in [("DM_DISABLE_UDEV", "1"), ("LC_ALL", "C"), ("HOME", "/dev/null")] {
                assert_eq!(variable(shell, variable_name).as_deref(), Some(value));
            }
            assert_eq!((variable(shell, "LANG"), variable(shell, "LVM_COMMAND_PROFILE")), (None, None));
            let message = bench.must_not(create("b", 30_000)).await;
            assert!(message.contains("insufficient free space"), "{message}");
            bench.end().await;
        });
    });
}

#[test]
fn it_works_beside_a_running_udevd() {
    on_machine(machine(1).udev(), async |bench| {
        sh("udevadm control --ping");
        for _ in 0..3 {
            works(&bench).await;
        }
        sh("udevadm settle");
        assert_eq!(sh("dmsetup udevcookies | grep -c 0x || true"), "0");
        bench.end().await;
    });
}

#[test]
fn lines_of_somebody_else_around_an_answer_do_no_harm() {
    for kind in [EngineKind::Shell, EngineKind::Process] {
        on_disks(1, async |bench| {
            sh("cp -L $(command -v lvm) /usr/local/lvm-itself");
            let wrapper = "#!/bin/bash\necho 'a library says hello'\necho '  and {more}' \necho oops >&2\nexec -a lvm /usr/local/lvm-itself \"$@\"\n";
            fs::write("/run/lvm-wrapper", wrapper).unwrap();
            sh("chmod +x /run/lvm-wrapper; mount --bind /run/lvm-wrapper $(readlink -f $(command -v lvm))");
            let options = LocalOptions { kind, commands_per_shell: 3, ..LocalOptions::default() };
            let bench = bench.again(options).await;
            works(&bench).await;
            bench.end().await;
        });
    }
}

#[test]
fn groups_of_this_system_are_ours_and_groups_of_others_are_not() {
    machine(2).boot(|| {
        run(async {
            fs::create_dir_all("/etc/lvm").unwrap();
            fs::write(
                "/etc/lvm/lvm.conf",
                "global { system_id_source=\"lvmlocal\" }\nlog { silent=1 command_names=1 }\n",
            )
            .unwrap();
            fs::write("/etc/lvm/lvmlocal.conf", "local { system_id=\"here\" }\n").unwrap();
            let disks = lab::disks();
            sh(&format!("vgcreate -q vg0 {}; vgcreate -q vg1 {}", disks[0].display(), disks[1].display()));
            sh("vgchange -qy --systemid there vg1");
            let bench = Bench::start(LocalOptions::default()).await;
            assert_eq!(bench.backend.system_id(), Some("here"));
            let seen = sightings(&bench.backend.look().await.unwrap(), bench.backend.system_id());
            let health: Vec<_> = seen.iter().map(|s| (s.vg.name.as_str(), s.health.clone())).collect();
            assert_eq!(health, [("vg0", Health::Healthy), ("vg1", Health::Foreign("there".to_owned()))]);
            bench.must(create("a", 1)).await;
            let vg1 = "vg1".parse().unwrap();
            let other = bench.backend.open(&vg1, &disks);
            assert!(!other.run(&vg1, &create("a", 1)).await.unwrap().success);
            drop(other);
            bench.end().await;
        });
    });
}

#[test]
fn two_drivers_side_by_side_do_not_disturb_each_other() {
    on_disks(1, async |bench| {
        let other = Bench::start(LocalOptions::default()).await;
        for number in 0..5 {
            let (one, two) = (create(&format!("a{number}"), 1), create(&format!("b{number}"), 1));
            tokio::join!(bench.must(one), other.must(two));
        }
        assert_eq!(lvms().len(), 2);
        assert_eq!(bench.names().await.len(), 10);
        bench.end().await;
        other.must(create("c", 1)).await;
        let third = Bench::start(LocalOptions::default()).await;
        assert_eq!(third.names().await.len(), 11);
        third.end().await;
        other.end().await;
        assert_eq!(sh("find /run/quarry/lvm -name lvm.conf | wc -l"), "0");
    });
}
