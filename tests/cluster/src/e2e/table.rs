//! What came out, for people.

use std::collections::BTreeMap;

use super::record::{Entry, Outcome, Record, log};
use crate::Paths;

/// How much of the reason for a failure is worth a line of its own.
const LINES: usize = 4;

/// Failures with their reasons, the parts of the suite, and, as the last line, the counts.
pub(super) fn text(paths: &Paths, record: &Record, driver: &str) -> String {
    let mut lines = Vec::new();
    for (name, entry) in record.entries.iter().filter(|(_, entry)| entry.outcome == Outcome::Failed) {
        lines.push(format!("FAILED {name}"));
        lines.extend(entry.note.lines().take(LINES).map(|line| format!("    {line}")));
        lines.push(format!("    log: {}", log(paths, name).display()));
    }
    lines.push(by_part(record));
    let others =
        record.entries.values().filter(|entry| entry.driver.as_deref().is_some_and(|it| it != driver));
    match others.count() {
        0 => {}
        count => {
            lines.push(format!("{count} ran with another build of the driver: --again all runs them anew"))
        }
    }
    lines.push(counts(record));
    lines.join("\n")
}

fn counts(record: &Record) -> String {
    let [passed, failed, skipped, waiting] =
        [Outcome::Passed, Outcome::Failed, Outcome::Skipped, Outcome::Waiting].map(|it| record.count(it));
    let rest = match waiting {
        0 => String::new(),
        count => format!("; {count} have not run yet"),
    };
    format!("e2e: {passed} passed, {failed} failed, {skipped} skipped{rest}")
}

/// The table of docs/e2e.md: the parts of the suite, how many specs each has, and what came of them.
pub(super) fn by_part(record: &Record) -> String {
    let mut parts: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in record.entries.values() {
        parts.entry(&entry.suite).or_default().push(entry);
    }
    let mut lines = vec![
        "| part | specs | passed | failed | skipped | seconds |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(parts.iter().map(|(part, entries)| row(part, entries)));
    lines.join("\n")
}

fn row(part: &str, entries: &[&Entry]) -> String {
    let count = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
    let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(count);
    let seconds: f64 = entries.iter().map(|entry| entry.seconds).sum();
    format!("| {part} | {} | {passed} | {failed} | {skipped} | {seconds:.0} |", entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_counts() {
        let paths = Paths::of("/nowhere".into());
        let mut record = Record::load(&paths).unwrap();
        let entry = |outcome, driver: Option<&str>| Entry {
            suite: "part".into(),
            outcome,
            seconds: 1.5,
            note: "no\nreally".into(),
            driver: driver.map(str::to_owned),
        };
        record.entries.insert("External Storage a".into(), entry(Outcome::Passed, Some("d1")));
        record.entries.insert("External Storage b".into(), entry(Outcome::Failed, Some("d2")));
        record.entries.insert("External Storage c".into(), entry(Outcome::Waiting, None));
        let text = text(&paths, &record, "d2");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["FAILED External Storage b", "    no", "    really"]);
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "| part | 3 | 1 | 1 | 0 | 4 |",
                "1 ran with another build of the driver: --again all runs them anew",
                "e2e: 1 passed, 1 failed, 0 skipped; 1 have not run yet"
            ]
        );
    }
}
