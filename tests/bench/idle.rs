//! What the driver does and holds while nobody wants anything of it.

use std::fmt;
use std::time::Duration;

use super::ours::Ours;
use super::processes;
use super::report::{Figure, Report};
use crate::driver::processes::is_lvm_shell;

/// For so many minutes. The driver looks at the machine once a minute.
const MINUTES: u32 = 3;

/// How often csi-provisioner asks for the capacity, at worst.
const PACE: Duration = Duration::from_secs(1);

/// A level at which the driver logs every command that it gives LVM, to a shell or as a process.
const LOG: &str = "info,quarry::lvm=debug,quarry::exec=debug";

/// Anonymous memory of the driver and of its lvm shells together, in MiB.
pub(super) struct Memory {
    driver: f64,
    shells: f64,
}

impl Memory {
    pub(super) fn of(ours: &Ours) -> Self {
        let pid = ours.driver.pid();
        let shells = processes::children(pid).into_iter().filter(|pid| is_lvm_shell(*pid));
        Self { driver: processes::anonymous_mib(pid), shells: shells.map(processes::anonymous_mib).sum() }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "driver {:.1} MiB, shells {:.1} MiB anonymous", self.driver, self.shells)
    }
}

/// After all that the driver was asked to do.
pub(super) fn memory(ours: &Ours, report: &mut Report) {
    let memory = Memory::of(ours);
    report.add(Figure::new("driver_anonymous_mib", memory.driver, None, "MiB"));
    report.add(Figure::new("shell_anonymous_mib", memory.shells, None, "MiB"));
}

/// Asks a driver of its own for nothing but its capacity, and counts what it gives LVM to do.
pub(super) async fn commands(report: &mut Report) {
    let ours = Ours::start(LOG).await;
    ours.rest().await;
    let count = || ours.driver.log().count(&["running", "lvm"]);
    let before = count();
    let mut pace = tokio::time::interval(PACE);
    for _ in 0..60 * MINUTES {
        pace.tick().await;
        ours.client.clone().capacity().await.unwrap();
    }
    pace.tick().await;
    let commands = u32::try_from(count() - before).unwrap();
    report.add(Figure::new(
        "idle_commands_per_minute",
        f64::from(commands) / f64::from(MINUTES),
        None,
        "1/min",
    ));
    report.note(&format!("a driver that did nothing else: {}", Memory::of(&ours)));
    ours.stop();
}
