//! The image holds what the driver calls, at pinned versions.

use std::collections::BTreeSet;

use quarry::exec::Program;

use super::text;

/// The words of the Dockerfile's step that collects programs, those of packages and those of programs.
fn collected() -> (Vec<String>, Vec<String>) {
    let dockerfile = text("Dockerfile").replace("\\\n", " ");
    let step = dockerfile.lines().find(|line| line.starts_with("RUN sh /collect")).unwrap();
    let (packages, programs) = step.split_once(" -- ").unwrap();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    (words(packages), words(programs))
}

#[test]
fn every_program_that_the_driver_calls_is_in_the_image_and_no_other() {
    let (_, programs) = collected();
    let programs: BTreeSet<_> = programs.iter().map(String::as_str).collect();
    assert_eq!(programs, BTreeSet::from(Program::ALL.map(Program::name)));
}

#[test]
fn every_package_has_a_pinned_version() {
    let (packages, _) = collected();
    let dockerfile = text("Dockerfile");
    for package in BTreeSet::from(Program::ALL.map(Program::package)) {
        let argument = package.to_uppercase().replace('-', "_");
        assert!(packages.contains(&format!("\"{package}=${argument}\"")), "{package}: {packages:?}");
        let pin = dockerfile.lines().find_map(|line| line.strip_prefix(&format!("ARG {argument}=")));
        assert!(pin.is_some_and(|pin| pin.contains('.')), "{package}: {pin:?}");
    }
}

#[test]
fn what_the_dockerfile_copies_is_not_ignored() {
    let ignored = text(".dockerignore");
    for file in ["deploy/image/collect", "target/release/quarry"] {
        assert!(ignored.lines().any(|line| line == format!("!{file}")), "{file}");
        assert!(text("Dockerfile").contains(file), "{file}");
    }
}
