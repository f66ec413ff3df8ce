use clap::CommandFactory;

use super::*;
use crate::app::AppError;
use crate::config::ConfigError;

fn read(line: &str) -> Result<Cli, Answer> {
    Cli::read(std::iter::once("quarry").chain(line.split_whitespace()).map(OsString::from))
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_flag_is_explained() {
    let mut command = Cli::command();
    command.build();
    for role in ["standalone", "node"] {
        let role = command.find_subcommand_mut(role).unwrap();
        for flag in role.get_arguments().filter(|flag| flag.get_id() != "help") {
            assert!(flag.get_help().is_some(), "{} has no help", flag.get_id());
            assert!(flag.get_env().is_some(), "{} has no environment variable", flag.get_id());
        }
    }
    let mut help = |role: &str| command.find_subcommand_mut(role).unwrap().render_long_help().to_string();
    let (standalone, node) = (help("standalone"), help("node"));
    for flag in ["--controller", "--ca-directory", "--token-file", "--kubelet-directory"] {
        assert!(node.contains(flag) && !standalone.contains(flag), "{flag} is not in the right help");
    }
    for flag in [
        "--volume-group",
        "--config",
        "--node-name",
        "--endpoint",
        "--health-address",
        "--run-directory",
        "--backup-directory",
        "--lvm-locking-directory",
        "--lvm-patience",
        "--grace-period",
        "--log",
        "--log-format",
        "--runtime-threads",
        "Example",
    ] {
        assert!(standalone.contains(flag) && node.contains(flag), "{flag} is not in the help");
    }
}

#[test]
fn asking_for_help_is_no_mistake_and_everything_else_is() {
    for line in ["--help", "--version", "standalone --help", "help"] {
        assert!(!read(line).unwrap_err().0.use_stderr(), "{line}");
    }
    for line in
        ["", "serve", "--bogus", "standalone --bogus", "standalone x", "standalone --runtime-threads two"]
    {
        assert!(read(line).unwrap_err().0.use_stderr(), "{line}");
    }
    assert!(read("standalone --volume-group vg0").is_ok());
    assert!(read("node --volume-group vg0 --controller c:1").is_ok());
    assert!(read("config-schema").is_ok());
}

#[test]
fn only_mistakes_of_the_user_have_the_code_for_them() {
    let usage = ExitCode::from(USAGE);
    assert_eq!(AppError::from(ConfigError::NoVolumeGroup).exit_code(), usage);
    assert_eq!(AppError::Start(io::Error::other("x")).exit_code(), ExitCode::FAILURE);
}
