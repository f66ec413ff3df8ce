//! `tests/known-faults.md` has a row for every known fault, and names only tests that there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The numbers in the project's list of known faults. A fault that is added to the list is added here.
const NUMBERS: [u16; 94] = [
    1, 3, 5, 6, 8, 9, 11, 12, 13, 14, 16, 18, 19, 21, 22, 23, 24, 25, 27, 29, 31, 32, 34, 35, 37, 38, 40, 42,
    43, 45, 46, 48, 50, 53, 54, 56, 57, 58, 59, 61, 63, 65, 66, 67, 69, 70, 71, 73, 75, 76, 78, 79, 81, 82,
    83, 85, 87, 89, 90, 91, 92, 94, 96, 98, 99, 100, 101, 103, 104, 106, 107, 108, 111, 112, 114, 116, 117,
    119, 120, 121, 123, 125, 127, 129, 130, 131, 133, 135, 136, 138, 139, 140, 142, 143,
];

/// What stands in the place of tests where there are none.
const REASONS: [&str; 2] = ["Not yet: ", "Not ours: "];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// A row of the table.
struct Row<'a> {
    number: u16,
    holds: &'a str,
    shown: &'a str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let (_, table) = page.split_once("\n|---|---|---|\n").expect("there is a table");
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let ["", number, holds, shown, ""] = cells[..] else { panic!("no row: {line}") };
        Row { number: number.parse().unwrap(), holds, shown }
    };
    table.lines().map(row).collect()
}

impl<'a> Row<'a> {
    /// The tests that it names.
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        self.shown.split('`').skip(1).step_by(2)
    }

    fn is_without_tests(&self) -> bool {
        REASONS.iter().any(|reason| self.shown.starts_with(reason))
    }
}

/// Whether there is a test or a scenario of that name.
fn exists(name: &str) -> bool {
    if let Some(scenario) = name.strip_prefix("cluster: ") {
        let all = read(Path::new("tests/cluster/src/scenarios.rs")).unwrap();
        return all.contains(&format!("of_driver(\"{scenario}\","));
    }
    let Some((module, test)) = name.rsplit_once("::") else { return false };
    let files = match module.strip_prefix("quarry::") {
        Some(module) => files_of_unit_tests(module),
        None => file_of_integration_tests(module).into_iter().collect(),
    };
    files.iter().filter_map(|file| read(file)).any(|text| has_test(&text, test))
}

/// Where unit tests of a module may stand: it is called `tests`, or lies in one that is.
fn files_of_unit_tests(module: &str) -> Vec<PathBuf> {
    if !module.split("::").any(|part| part == "tests") {
        return Vec::new();
    }
    let path = module.replace("::", "/");
    let inside = path.strip_suffix("/tests").map(|tested| [tested.to_owned(), format!("{tested}_tests")]);
    let stems = inside.into_iter().flatten().chain([path]);
    stems.map(|stem| format!("src/{stem}.rs").into()).collect()
}

/// The file of a module of the integration binary, whose first part may have a path of its own.
fn file_of_integration_tests(module: &str) -> Option<PathBuf> {
    let (first, rest) = module.split_once("::").unwrap_or((module, ""));
    let binary = read(Path::new("tests/integration.rs"))?;
    let (before, _) = binary.split_once(&format!("\nmod {first};"))?;
    let path = before.lines().last()?.strip_prefix("#[path = \"").and_then(|path| path.strip_suffix("\"]"));
    let (own, below) = match path {
        Some(path) => (PathBuf::from(path), PathBuf::from(path).parent()?.to_owned()),
        None => (format!("{first}.rs").into(), PathBuf::from(first)),
    };
    let file = if rest.is_empty() { own } else { below.join(format!("{}.rs", rest.replace("::", "/"))) };
    Some(Path::new("tests").join(file))
}

/// Whether a function of that name stands in the text, marked as a test that is not left out.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &str| line.trim_start_matches("async ").starts_with(&format!("fn {name}("));
    let marks = |at: usize| lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    lines.iter().enumerate().filter(|(_, line)| is_it(line)).any(|(at, _)| {
        let marked = |words: &[&str]| marks(at).any(|mark| words.iter().any(|word| mark.starts_with(word)));
        marked(&["#[test]", "#[tokio::test"]) && !marked(&["#[ignore"])
    })
}

fn page() -> String {
    read(Path::new("tests/known-faults.md")).unwrap()
}

#[test]
fn every_known_fault_has_one_row() {
    let page = page();
    let numbers: Vec<u16> = rows(&page).iter().map(|row| row.number).collect();
    assert_eq!(numbers, NUMBERS);
}

#[test]
fn every_row_says_what_holds_and_names_a_test_or_a_reason() {
    let page = page();
    for row in rows(&page) {
        let (has_tests, without) = (row.tests().next().is_some(), row.is_without_tests());
        assert_ne!(has_tests, without, "{}: {}", row.number, row.shown);
        assert!(without || !row.holds.is_empty(), "{}: tests for what?", row.number);
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let page = page();
    let all = rows(&page);
    let named: BTreeSet<&str> = all.iter().flat_map(Row::tests).collect();
    assert!(named.len() > 80, "{named:?}");
    let absent: Vec<&str> = named.into_iter().filter(|name| !exists(name)).collect();
    assert!(absent.is_empty(), "there is no test {absent:#?}");
}

#[test]
fn what_does_not_exist_is_noticed() {
    for there in [
        "known_faults::every_known_fault_has_one_row",
        "engine::locks::commands_take_the_lock_that_stock_commands_take",
        "quarry::lvm::local::parse::tests::a_group_is_read",
        "quarry::types::bytes::tests::sizes_are_shown_exactly",
        "quarry::csi::tests::stock::only_that_very_volume_is_removed_as_unused",
        "cluster: grow",
    ] {
        assert!(exists(there), "{there}");
    }
    for absent in [
        "known_faults::page",
        "known_faults::no_such_test",
        "engine::ends::a_driver_that_will_be_killed",
        "locks::commands_take_the_lock_that_stock_commands_take",
        "quarry::types::bytes::sizes_are_shown_exactly",
        "cluster: none",
        "grow",
    ] {
        assert!(!exists(absent), "{absent}");
    }
}
