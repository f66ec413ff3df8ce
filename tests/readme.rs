//! README.md tells the truth: what it names exists, and what a user can type or read is in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use quarry::config::Settings;
use quarry::types::{FsType, MakeOption, PARAMETERS};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn readme() -> String {
    read("README.md")
}

/// What stands under a heading, up to the next one.
fn section<'a>(readme: &'a str, heading: &str) -> &'a str {
    let (_, rest) = readme.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    rest.split("\n## ").next().unwrap()
}

/// Texts in code style, without those in blocks.
fn code(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    outside.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// The blocks of one language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let blocks = text.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// The first cells of all rows of tables.
fn first_cells(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split('|').nth(1)).collect()
}

/// Every word of `text` that begins with `--`.
fn flags(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words
        .filter(|word| word.strip_prefix("--").is_some_and(|rest| rest.starts_with(char::is_alphabetic)))
        .collect()
}

fn output(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quarry")).args(arguments).env_clear().output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_make_target_exists() {
    let (readme, makefile) = (readme(), read("Makefile"));
    let named =
        readme.split("make ").skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    let typed = code(&readme).into_iter().chain(blocks(&readme, "sh")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for rest in named {
        let ends = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let target = rest.split(ends).next().unwrap();
        if typed.contains(&format!("make {target}")) {
            assert!(makefile.contains(&format!("\n{target}:")), "make {target} is no target");
            found.insert(target);
        }
    }
    assert!(found.is_superset(&["demo", "test", "setup", "lab"].into()), "{found:?}");
}

#[test]
fn every_flag_exists_and_none_is_left_out() {
    let help = ["standalone", "node", "controller"].map(|role| output(&[role, "--help"])).concat();
    let readme = readme();
    let table = section(&readme, "Configuration");
    let told: BTreeSet<&str> = first_cells(table).into_iter().flat_map(flags).collect();
    let there: BTreeSet<&str> = flags(&help).into_iter().filter(|flag| *flag != "--help").collect();
    assert_eq!(told, there);
    let roles = ["quarry standalone", "quarry node", "quarry controller"];
    let commands = readme.lines().filter(|line| roles.iter().any(|role| line.contains(role)));
    for flag in commands.flat_map(flags).chain(flags(section(&readme, "Troubleshooting"))) {
        assert!(there.contains(flag), "{flag} is no flag");
    }
    for setting in ["[env: ", "[default: "] {
        for value in help.split(setting).skip(1).map(|rest| rest.split(['=', ']']).next().unwrap()) {
            assert!(table.contains(value), "{setting}{value}] is not in the table");
        }
    }
}

#[test]
fn the_commands_for_people_are_told_with_all_their_flags() {
    let page = read("docs/looking.md");
    let (commands, rest) = page.split_once("| flag | of |").unwrap();
    for command in ["volumes", "vgs", "check"] {
        assert!(
            first_cells(commands).iter().any(|cell| cell.contains(&format!("`quarry {command}`"))),
            "{command}"
        );
    }
    let help = ["volumes", "vgs", "check"].map(|command| output(&[command, "--help"])).concat();
    let there: BTreeSet<&str> = flags(&help).into_iter().filter(|flag| *flag != "--help").collect();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let told: BTreeSet<&str> = first_cells(table).into_iter().flat_map(flags).collect();
    assert_eq!(told, there);
    for flag in page.lines().filter(|line| line.contains("quarry volumes")).flat_map(flags) {
        assert!(there.contains(flag), "{flag} is no flag");
    }
    for value in help.split("[env: ").skip(1).map(|rest| rest.split('=').next().unwrap()) {
        assert!(page.contains(value), "{value}");
    }
}

#[test]
fn the_command_for_lost_groups_is_told_with_all_its_flags() {
    let page = read("docs/looking.md");
    let (_, rest) = page.split_once("\n## When a volume group is lost\n").unwrap();
    let (text, _) = rest.split_once("\n## ").unwrap();
    let help = output(&["lost", "--help"]);
    let there: BTreeSet<&str> = flags(&help).into_iter().filter(|flag| *flag != "--help").collect();
    let told: BTreeSet<&str> = first_cells(text).into_iter().flat_map(flags).collect();
    assert_eq!(told, there);
    for value in help.split("[env: ").skip(1).map(|rest| rest.split('=').next().unwrap()) {
        assert!(text.contains(value), "{value}");
    }
}

#[test]
fn every_setting_of_the_file_is_told_and_its_example_is_right() {
    let readme = readme();
    let text = section(&readme, "Configuration");
    for role in ["standalone", "controller"] {
        let schema: serde_json::Value = serde_json::from_str(&output(&["config-schema", role])).unwrap();
        for name in schema["properties"].as_object().unwrap().keys() {
            let ways = [format!("`{name}`"), format!("`[[{name}]]`")];
            assert!(ways.iter().any(|way| text.contains(way)), "{name}");
        }
    }
    let examples = blocks(text, "toml");
    assert_eq!(examples.len(), 1);
    let settings: Settings = toml::from_str(examples[0]).unwrap();
    quarry::config::Config::resolve(settings, "host").unwrap();
}

#[test]
fn every_class_parameter_exists_and_none_is_left_out() {
    let readme = readme();
    let (parameters, _) = section(&readme, "Parameters and limits").split_once("| what | limit |").unwrap();
    let told: BTreeSet<&str> = first_cells(parameters).into_iter().flat_map(code).collect();
    let there: BTreeSet<&str> = PARAMETERS.iter().map(|parameter| parameter.key).collect();
    assert_eq!(told, there);
}

#[test]
fn every_option_of_a_file_system_is_told_and_no_other() {
    let readme = readme();
    let text = section(&readme, "File systems");
    let (making, mounting) = text.split_once("| file system | `mountOptions` |").unwrap();
    let row = |table: &str, of: &str| -> BTreeSet<String> {
        let row = table.lines().find(|line| line.starts_with(&format!("| {of} |"))).unwrap();
        code(row).into_iter().filter(|word| *word != "context=").map(str::to_owned).collect()
    };
    let (_, making) = making.split_once("| file system | `mkfsOptions` |").unwrap();
    let all = row(mounting, "all");
    for fs in FsType::ALL {
        let options = MakeOption::ALL.into_iter().filter(|option| option.fs() == fs);
        let made: BTreeSet<String> = options.map(|option| option.word().to_owned()).collect();
        assert_eq!(row(making, fs.name()), made);
        let told: BTreeSet<String> = row(mounting, fs.name()).union(&all).cloned().collect();
        assert_eq!(told, fs.mount_options().map(str::to_owned).collect());
    }
}

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The text of all sources, with strings that go over several lines in one.
fn all_sources() -> String {
    let mut text = String::new();
    sources(&root().join("src"), &mut text);
    let lines = text.split("\\\n").map(str::trim_start).collect::<Vec<_>>();
    lines.concat()
}

/// Words for errors that are not the driver's own.
const OTHERS: [&str; 1] = ["Permission denied"];

/// Whether the driver can say this: each part between gaps and colons stands in its source.
fn is_said(message: &str, sources: &str) -> bool {
    let parts =
        message.split('…').flat_map(|part| part.split(": ")).map(|part| part.trim_matches([' ', ':']));
    parts.into_iter().all(|part| OTHERS.contains(&part) || sources.contains(part))
}

#[test]
fn every_message_is_one_that_the_driver_says() {
    let (readme, sources) = (readme(), all_sources());
    let texts = ["Troubleshooting", "Which volume groups it uses"].map(|heading| section(&readme, heading));
    let messages: Vec<&str> = texts.into_iter().flat_map(first_cells).flat_map(code).collect();
    assert!(messages.len() > 40, "{messages:?}");
    for message in messages {
        assert!(is_said(message, &sources), "nothing says: {message}");
    }
    assert!(!is_said("volume … is on fire", &sources));
}

#[test]
fn every_link_leads_somewhere() {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().unwrap()));
    for page in docs.chain(["README.md".to_owned()]) {
        let text = read(&page);
        let folder = Path::new(&page).parent().unwrap();
        let targets = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for target in targets.filter(|target| !target.starts_with("https://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { PathBuf::from(&page) } else { folder.join(path) };
            assert!(root().join(&path).exists(), "{page}: {target} leads nowhere");
            let there = anchor.is_empty() || headings(&read(path.to_str().unwrap())).contains(anchor);
            assert!(there, "{page}: {target} leads nowhere");
        }
    }
}

/// The anchors of a page's headings.
fn headings(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    headings.map(|heading| heading.to_lowercase().replace(' ', "-").replace([',', '?'], "")).collect()
}
