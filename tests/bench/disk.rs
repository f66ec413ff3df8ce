//! What a pod's reads and writes cost, beside those of a person who made the LV by hand.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ours::Ours;
use super::report::{Figure, Report};
use super::samples::median;
use super::stock;
use crate::driver::{MIB, Mode, command, folder};

/// More than fio uses, so that a file of that size fits into a file system as well.
const SIZE: u64 = 320 * MIB;

/// How much of it fio reads and writes.
const USED: &str = "256m";

/// How long each run takes.
const RUN: Duration = Duration::from_secs(2);

/// What fio does: its name here, fio's for it, the size of a request, and what counts.
const JOBS: [(&str, &str, &str, Counts); 4] = [
    ("randread_4k", "randread", "4k", Counts::Requests),
    ("randwrite_4k", "randwrite", "4k", Counts::Requests),
    ("read_1m", "read", "1m", Counts::Bytes),
    ("write_1m", "write", "1m", Counts::Bytes),
];

#[derive(Clone, Copy)]
enum Counts {
    Requests,
    Bytes,
}

/// A raw block volume beside a bare LV, and a file in a published ext4 beside one in an ext4 made by hand.
pub(super) async fn measure(ours: &Ours, report: &mut Report, samples: usize) {
    let (stock, mount) = (stock::Lv::named("stock"), folder("stock"));
    for (what, mode) in [("block", Mode::Block), ("mount", Mode::Ext4)] {
        let (volume, _) = ours.create(SIZE, mode).await;
        ours.stage_and_publish(&volume).await;
        stock.create(SIZE);
        let (mut own, mut reference) = (volume.target(), PathBuf::from(stock.device()));
        if mode != Mode::Block {
            stock.mkfs_and_mount(&mount);
            (own, reference) = (own.join("file"), mount.join("file"));
        }
        for file in [&own, &reference] {
            // What was never written costs a disk of the lab less to read, and more to write.
            fio(file, "write", "1m", &["--end_fsync=1"]);
        }
        ours.rest().await;
        for job in JOBS {
            compare(report, what, job, [&own, &reference], samples.div_ceil(20));
        }
        if mode != Mode::Block {
            stock.unmount();
        }
        stock.remove();
        ours.unpublish_and_unstage(&volume).await;
        ours.delete(&volume).await;
    }
}

/// The median of some runs, the two sides in turn.
fn compare(
    report: &mut Report,
    what: &str,
    (name, rw, block, counts): (&str, &str, &str, Counts),
    files: [&Path; 2],
    runs: usize,
) {
    let limit = [format!("--runtime={}", RUN.as_secs()), "--time_based".to_owned()];
    let run = |file| {
        let told = fio(file, rw, block, &[&limit[0], &limit[1]]);
        figure(&told, rw, counts)
    };
    let (own, reference): (Vec<f64>, Vec<f64>) = (0..runs).map(|_| (run(files[0]), run(files[1]))).unzip();
    let unit = match counts {
        Counts::Requests => "1/s",
        Counts::Bytes => "MiB/s",
    };
    report.add(Figure::new(format!("fio_{what}_{name}"), median(own), Some(median(reference)), unit));
}

/// Runs fio past the page cache, and gives what it tells of itself.
fn fio(file: &Path, rw: &str, block: &str, more: &[&str]) -> String {
    let arguments = [
        "--name=bench".to_owned(),
        format!("--filename={}", file.display()),
        format!("--rw={rw}"),
        format!("--bs={block}"),
        format!("--size={USED}"),
        "--direct=1".to_owned(),
        "--ioengine=libaio".to_owned(),
        "--iodepth=16".to_owned(),
        "--thread".to_owned(),
        "--output-format=json".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
    command("fio", &arguments)
}

/// What counts, in fio's words for the direction that it went in.
fn figure(told: &str, rw: &str, counts: Counts) -> f64 {
    // Warnings may come before.
    let told: serde_json::Value = serde_json::from_str(&told[told.find('{').unwrap()..]).unwrap();
    let direction = if rw.ends_with("read") { "read" } else { "write" };
    let job = &told["jobs"][0][direction];
    match counts {
        Counts::Requests => job["iops"].as_f64().unwrap(),
        Counts::Bytes => job["bw_bytes"].as_f64().unwrap() / f64::from(1 << 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_tells_is_read() {
        let told = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
            {"jobs": [{"read": {"iops": 0.0, "bw_bytes": 0},
                       "write": {"iops": 250.5, "bw_bytes": 1048576}}]}"#;
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        close(figure(told, "randwrite", Counts::Requests), 250.5);
        close(figure(told, "write", Counts::Bytes), 1.0);
        close(figure(told, "randread", Counts::Requests), 0.0);
    }
}
