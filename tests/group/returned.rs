//! A disk that was away and is back, and that the kernel knows by another number since.

use std::path::PathBuf;

use crate::driver::{self, Driver, Mode, VG, Volume, make_group, sh};

/// Shows the machine's only disk under a name of its own. Its first MiB is left out, since LVM would find the
/// group twice.
fn connect(name: &str) {
    let disk = lab::disks().remove(0).display().to_string();
    sh(&format!("echo 0 $(($(blockdev --getsz {disk}) - 2048)) linear {disk} 2048 | dmsetup create {name}"));
}

/// Takes it away from under whoever uses it by that name.
fn pull_out(name: &str) {
    sh(&format!("dmsetup load {name} --table \"0 $(blockdev --getsz /dev/mapper/{name}) error\""));
    sh(&format!("dmsetup suspend --noflush --nolockfs {name}; dmsetup resume {name}"));
}

fn mark(volume: &Volume) {
    match volume.mode {
        Mode::Block => {
            drop(sh(&format!("echo kept | dd of={} conv=fsync,sync status=none", volume.target.display())))
        }
        _ => std::fs::write(volume.target.join("marker"), "kept").unwrap(),
    }
}

fn is_marked(volume: &Volume) {
    let target = volume.target.display();
    let found = match volume.mode {
        Mode::Block => sh(&format!("head -c 4 {target}")),
        _ => std::fs::read_to_string(volume.target.join("marker")).unwrap(),
    };
    assert_eq!(found, "kept", "{:?}", volume.mode);
}

#[test]
fn volumes_on_it_are_used_again_whether_they_were_taken_out_of_use_or_not() {
    lab::Machine::new().disk("2G").boot(|| {
        connect("before");
        make_group(VG, &[PathBuf::from("/dev/mapper/before")]);
        driver::run(async {
            let driver = Driver::start().await;
            let client = driver.client().await;
            let (mut resting, mut busy) = (Vec::new(), Vec::new());
            for mode in Mode::ALL {
                for (name, kept) in [("resting", &mut resting), ("busy", &mut busy)] {
                    let volume = Volume::in_use(&client, &format!("{name}-{}", mode.word()), mode).await;
                    mark(&volume);
                    kept.push(volume);
                }
            }
            sh("sync; echo 3 > /proc/sys/vm/drop_caches");
            pull_out("before");
            connect("after");
            for volume in &resting {
                volume.end().await;
                volume.start().await;
                is_marked(volume);
            }
            for volume in &busy {
                volume.publish().await.unwrap();
                is_marked(volume);
                assert_eq!(volume.grow_by(4).await.unwrap(), volume.size_and(4));
            }
            sh("dmsetup remove before");
            for volume in resting.iter().chain(&busy) {
                volume.end().await;
                volume.delete().await.unwrap();
            }
        });
    });
}
