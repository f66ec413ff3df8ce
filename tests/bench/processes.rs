use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use crate::driver::MIB;
use crate::driver::processes::{parent_of, pids, status};

/// The process numbers of a process's children, zombies too.
pub(super) fn children(parent: u32) -> Vec<u32> {
    pids().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Anonymous memory that is resident, in MiB.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn anonymous_mib(pid: u32) -> f64 {
    let kib: u64 = status(pid, "RssAnon").unwrap().trim_end_matches(" kB").parse().unwrap();
    (kib << 10) as f64 / MIB as f64
}

/// For how long a process has worked, in user's and kernel's code together (proc(5), `stat`).
pub(super) fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The program's name stands in brackets, and may hold anything.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // The state is the third field: user's time the 14th, the kernel's the next.
    let times = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).unwrap().unwrap()).unwrap();
    Duration::from_millis(times.sum::<u64>() * 1000 / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let (pid, before) = (std::process::id(), cpu(std::process::id()));
        let mut sum = 0_u64;
        // Other tests of this process may work as well.
        while cpu(pid) - before < Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
        }
        assert!(cpu(pid) > before);
    }
}
