use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::samples::{Pair, ms};

/// The figures, in the folder that guest and host share.
pub(super) const JSON: &str = "bench.json";

/// The table, there too.
const TABLE: &str = "table";

/// How often the host looks for new lines of the table.
const PACE: Duration = Duration::from_millis(200);

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    name: String,
    ours: f64,
    /// `None` where there is nothing to compare with.
    reference: Option<f64>,
    /// Ours by the reference.
    ratio: Option<f64>,
    unit: &'static str,
}

impl Figure {
    pub(super) fn new(
        name: impl Into<String>,
        ours: f64,
        reference: Option<f64>,
        unit: &'static str,
    ) -> Self {
        let ratio = reference.map(|reference| {
            assert!(reference > 0.0, "a reference of {reference} {unit}");
            rounded(ours / reference)
        });
        Self { name: name.into(), ours: rounded(ours), reference: reference.map(rounded), ratio, unit }
    }

    /// The percentile of both sides.
    pub(super) fn percentile(name: &str, percent: usize, pair: &Pair) -> Self {
        let [ours, reference] = [&pair.ours, &pair.reference].map(|samples| ms(samples.percentile(percent)));
        Self::new(name, ours, Some(reference), "ms")
    }

    fn row(&self) -> String {
        let or_none = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let (reference, ratio) = (or_none(self.reference), or_none(self.ratio));
        row(&self.name, &format!("{:.2}", self.ours), &reference, &ratio, self.unit)
    }
}

fn row(name: &str, ours: &str, reference: &str, ratio: &str, unit: &str) -> String {
    format!("{name:<28}{ours:>12}{reference:>12}{ratio:>8}  {unit}")
}

/// To a thousandth: no more of it means anything.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The table and the figures, written in the guest as they come.
pub(super) struct Report {
    folder: PathBuf,
    table: File,
    figures: Vec<Figure>,
}

impl Report {
    pub(super) fn begin(folder: &Path) -> Self {
        let table = File::create(folder.join(TABLE)).unwrap();
        let mut report = Self { folder: folder.to_owned(), table, figures: Vec::new() };
        report.note(&row("name", "ours", "reference", "ratio", "unit"));
        report
    }

    /// A line that is no figure.
    pub(super) fn note(&mut self, line: &str) {
        writeln!(self.table, "{line}").unwrap();
    }

    pub(super) fn add(&mut self, figure: Figure) {
        self.note(&figure.row());
        self.figures.push(figure);
    }

    /// The 50th and the 99th percentile of something with so many LVs in the group.
    pub(super) fn add_both(&mut self, what: &str, lvs: usize, pair: &Pair) {
        for percent in [50, 99] {
            self.add(Figure::percentile(&format!("{what}_p{percent}_{lvs}"), percent, pair));
        }
    }

    /// Writes the figures.
    pub(super) fn end(self) {
        let json = serde_json::to_string_pretty(&self.figures).unwrap();
        std::fs::write(self.folder.join(JSON), json + "\n").unwrap();
    }
}

/// Puts figures in place of those of the same names in a list of others, which need not be there.
pub(super) fn merge(figures: &Path, into: &Path) {
    let read = |path: &Path| -> Vec<serde_json::Value> {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let new = read(figures);
    let mut all = if into.exists() { read(into) } else { Vec::new() };
    all.retain(|old| new.iter().all(|figure| figure["name"] != old["name"]));
    all.extend(new);
    std::fs::write(into, serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
}

/// Shows the table on the host while it grows, to its end when this is dropped.
pub(super) struct Shown {
    ended: Arc<AtomicBool>,
    shower: Option<JoinHandle<()>>,
}

impl Shown {
    /// Forgets what an earlier run has left in the folder.
    pub(super) fn begin(folder: &Path) -> Self {
        let path = folder.join(TABLE);
        let mut table = File::create(&path).and_then(|_| File::open(path)).unwrap();
        drop(std::fs::remove_file(folder.join(JSON)));
        let ended = Arc::new(AtomicBool::new(false));
        let last = Arc::clone(&ended);
        let shower = std::thread::spawn(move || {
            loop {
                let ended = last.load(Ordering::Relaxed);
                let mut lines = Vec::new();
                table.read_to_end(&mut lines).unwrap();
                // Not with a macro: the test framework would keep that for a test that fails.
                std::io::stdout().write_all(&lines).unwrap();
                if ended {
                    break;
                }
                std::thread::sleep(PACE);
            }
        });
        Self { ended, shower: Some(shower) }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        drop(self.shower.take().map(JoinHandle::join));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_ours_by_the_reference_and_there_is_none_without_one() {
        let figure = Figure::new("create_p50_0", 50.0, Some(200.0), "ms");
        assert_eq!(figure.ratio, Some(0.25));
        assert_eq!(figure.row(), "create_p50_0                       50.00      200.00    0.25  ms");
        let alone = Figure::new("driver_anonymous_mib", 6.0, None, "MiB");
        assert_eq!(alone.row(), "driver_anonymous_mib                6.00           -       -  MiB");
    }

    #[test]
    fn percentiles_of_both_sides_are_compared() {
        let times = |factor: u64| (1..=100).map(move |time| Duration::from_millis(time * factor)).collect();
        let pair = Pair { ours: times(1), reference: times(4) };
        assert_eq!(Figure::percentile("x", 50, &pair), Figure::new("x", 50.0, Some(200.0), "ms"));
        assert_eq!(Figure::percentile("x", 99, &pair), Figure::new("x", 99.0, Some(396.0), "ms"));
    }

    #[test]
    fn the_figures_are_written_as_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin(folder.path());
        report.add(Figure::new("create_p50_0", 1.0 / 3.0, Some(2.0), "ms"));
        report.add(Figure::new("idle_commands_per_minute", 1.0, None, "1/min"));
        report.end();
        let text = std::fs::read_to_string(folder.path().join(JSON)).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!([
            {"name": "create_p50_0", "ours": 0.333, "reference": 2.0, "ratio": 0.167, "unit": "ms"},
            {"name": "idle_commands_per_minute", "ours": 1.0, "reference": null, "ratio": null, "unit": "1/min"},
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn newer_figures_take_the_place_of_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        let [new, all] = ["new", "all"].map(|name| folder.path().join(name));
        let names = |figures: &str| {
            std::fs::write(&new, figures).unwrap();
            merge(&new, &all);
            let found: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(&all).unwrap()).unwrap();
            found
                .as_array()
                .unwrap()
                .iter()
                .map(|one| format!("{} {}", one["name"], one["ours"]))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(r#"[{"name": "a", "ours": 1}, {"name": "b", "ours": 2}]"#),
            [r#""a" 1"#, r#""b" 2"#]
        );
        assert_eq!(names(r#"[{"name": "a", "ours": 3}]"#), [r#""b" 2"#, r#""a" 3"#]);
    }
}
