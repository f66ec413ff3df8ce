//! Hosts whose settings, locale and disks are not what one would wish for.

use std::process::Command;
use std::time::{Duration, Instant};

use super::support::{boot, start};
use crate::driver::{self, Client, Driver, Mode, SIZE, VG, Volume, report, sh};

/// What an administrator may have set for LVM on a host, each line of which breaks a program that does
/// not bring settings of its own.
const HOSTILE: &str = r#"
config { checks=1 abort_on_errors=1 }
devices {
	filter=["r|.*|"]
	global_filter=["r|.*|"]
	use_devicesfile=1
	devicesfile="none.devices"
}
log { prefix="host: " command_names=1 verbose=3 silent=0 }
global { units="H" suffix=1 etc="/nonexistent" }
report { output_format="basic" headings=1 list_item_separator=";" compact_output=1 }
backup { backup=1 archive=1 backup_dir="/nonexistent" }
activation { volume_list=["none"] read_only_volume_list=["@*"] auto_activation_volume_list=[] }
"#;

/// Puts the hostile settings in the place of the host's own until it is dropped.
struct HostileHost;

impl HostileHost {
    fn new() -> Self {
        sh("mv /etc/lvm/lvm.conf /etc/lvm/own.conf");
        std::fs::write("/etc/lvm/lvm.conf", HOSTILE).unwrap();
        Self
    }
}

impl Drop for HostileHost {
    fn drop(&mut self) {
        sh("mv /etc/lvm/own.conf /etc/lvm/lvm.conf");
    }
}

/// A volume's whole life, of each kind.
async fn lives(client: &Client) {
    let id = |volume: &Volume| volume.id.clone();
    for mode in [Mode::Ext4, Mode::Block] {
        let volume = Volume::create(client, "pvc-a", mode).await;
        volume.start().await;
        volume.stats().await.unwrap();
        assert_eq!(volume.expand(64 << 20).await.unwrap(), 64 << 20, "{}", id(&volume));
        volume.end().await;
        volume.delete().await.unwrap();
    }
}

#[test]
fn the_hosts_settings_and_locale_change_nothing() {
    boot(async || {
        let uuid = report("vgs", "vg_uuid", VG).remove(0);
        let hostile = HostileHost::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
        command
            .args(["standalone", "--volume-group", VG])
            .env("LANG", "de_DE.UTF-8")
            .env("LC_ALL", "de_DE.UTF-8")
            .env("LANGUAGE", "de")
            .env("TZ", "Pacific/Kiritimati")
            .env("LVM_SYSTEM_DIR", "/nonexistent")
            .env("LVM_VG_NAME", "none")
            .env("LVM_SUPPRESS_SYSLOG", "1");
        let driver = Driver::launch(command).await;
        let client = driver.client().await;
        let mut caller = client.clone();
        let free = caller.capacity().await.unwrap();
        assert!(free.0 > 0);
        let made = caller.create_in(VG, "pvc-made", SIZE, Mode::Ext4).await.unwrap();
        assert!(made.volume_id.starts_with(&uuid));
        let staging = driver::folder("made");
        caller.stage(&made.volume_id, &staging, Mode::Ext4).await.unwrap();
        assert_eq!(caller.expand(&made.volume_id, 64 << 20, Mode::Ext4).await.unwrap(), 64 << 20);
        caller.unstage(&made.volume_id, &staging).await.unwrap();
        caller.delete(&made.volume_id).await.unwrap();
        assert_eq!(caller.capacity().await.unwrap(), free);
        driver.stop();
        drop(hostile);
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        assert_eq!(report("vgs", "vg_missing_pv_count", VG), ["0"]);
    });
}

#[test]
fn old_signatures_on_extents_make_nothing_ask_or_fail() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        for (size, signature) in [
            ("320M", "mkfs.xfs -q -f"),
            ("64M", "mkfs.ext4 -q -F"),
            ("128M", "mkfs.btrfs -q -f"),
            ("64M", "mkswap"),
            ("64M", "pvcreate -q -y --config 'devices{scan_lvs=1}'"),
        ] {
            let device = format!("/dev/{VG}/theirs");
            sh(&format!("lvcreate -q -y -Wn -Zn -n theirs -L {size} {VG}"));
            sh(&format!("{signature} {device} > /dev/null"));
            sh(&format!("lvremove -q -y {VG}/theirs"));
            let begun = Instant::now();
            lives(&client).await;
            assert!(begun.elapsed() < Duration::from_secs(30), "{signature}: {:?}", begun.elapsed());
        }
    });
}

#[test]
fn volumes_that_nobody_asks_for_stay_inactive_at_the_start() {
    let machine = lab::Machine::new().disk("512M");
    let body = async || {
        let made: String = (0..200)
            .map(|number| {
                let tags =
                    format!("--addtag=q.v=1 --addtag=q.s=u --addtag=q.m=ext4 --addtag=q.n=pvc-{number}");
                format!("lvcreate --activate=n --zero=n --wipesignatures=n -l1 {tags} -n v-{number} {VG}\n")
            })
            .collect();
        std::fs::write("/commands", made).unwrap();
        sh("lvm < /commands > /dev/null 2>&1");
        assert_eq!(report("vgs", "lv_count", VG), ["200"]);
        for _ in 0..2 {
            let driver = Driver::start().await;
            lives(&driver.client().await).await;
        }
        let active = report("lvs", "lv_active", VG);
        assert!(active.iter().all(|word| word.is_empty()), "{active:?}");
    };
    machine.boot(|| {
        sh(&format!("vgcreate -q -y -s 1M {VG} {}", lab::disks()[0].display()));
        driver::run(body());
    });
}
