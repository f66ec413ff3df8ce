use std::num::NonZeroUsize;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser};

use super::*;
use crate::link::Controllers;
use crate::types::{Bytes, VgName, chain};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: Flags,
}

#[derive(Parser)]
struct NodeLine {
    #[command(flatten)]
    flags: NodeFlags,
}

/// Reads a command line, whatever the environment of the tests is.
fn read<L: CommandFactory + FromArgMatches>(line: &str) -> L {
    let command = L::command().mut_args(|arg| arg.env(Resettable::Reset));
    let words = std::iter::once("quarry").chain(line.split_whitespace());
    let matches = command.try_get_matches_from(words).unwrap();
    L::from_arg_matches(&matches).unwrap()
}

fn flags(line: &str) -> Flags {
    read::<Line>(line).flags
}

fn typed(line: &str) -> Settings {
    flags(line).into_settings().1
}

fn typed_for_a_node(line: &str) -> Settings {
    read::<NodeLine>(line).flags.into_settings().1
}

fn file(text: &str) -> Settings {
    toml::from_str(text).unwrap()
}

/// Every setting. A new one does not compile until it is here, and so in the tests below.
fn full() -> Settings {
    Settings {
        volume_groups: Some(vec![GroupSettings { name: "vg0".into(), reserve: Some("10GiB".into()) }]),
        node_name: Some("n1".into()),
        endpoint: Some("unix:///a/csi.sock".into()),
        health_address: Some("127.0.0.1:1".into()),
        controller: Some("controllers:9443".into()),
        ca_directory: Some("/a/ca".into()),
        token_file: Some("/a/token".into()),
        kubelet_directory: Some("/a/kubelet".into()),
        run_directory: Some("/a/run".into()),
        backup_directory: Some("/a/backup".into()),
        lvm_locking_directory: Some("/a/lock".into()),
        lvm_patience: Some("45s".into()),
        grace_period: Some("90s".into()),
        log: Some("debug".into()),
        log_format: Some(LogFormat::Json),
        runtime_threads: Some(4),
    }
}

const FULL_FILE: &str = r#"
    node-name = "n1"
    endpoint = "unix:///a/csi.sock"
    health-address = "127.0.0.1:1"
    controller = "controllers:9443"
    ca-directory = "/a/ca"
    token-file = "/a/token"
    kubelet-directory = "/a/kubelet"
    run-directory = "/a/run"
    backup-directory = "/a/backup"
    lvm-locking-directory = "/a/lock"
    lvm-patience = "45s"
    grace-period = "90s"
    log = "debug"
    log-format = "json"
    runtime-threads = 4

    [[volume-groups]]
    name = "vg0"
    reserve = "10GiB"
"#;

const FULL_LINE: &str = "--node-name n1 --endpoint unix:///a/csi.sock --run-directory /a/run \
    --backup-directory /a/backup --lvm-locking-directory /a/lock --lvm-patience 45s --grace-period 90s --log debug \
    --log-format json --runtime-threads 4 --volume-group vg0=10GiB --health-address 127.0.0.1:1";

const FULL_NODE_LINE: &str =
    "--controller controllers:9443 --ca-directory /a/ca --token-file /a/token --kubelet-directory /a/kubelet";

#[test]
fn a_file_and_a_command_line_can_say_the_same() {
    assert_eq!(file(FULL_FILE), full());
    assert_eq!(typed_for_a_node(&format!("{FULL_LINE} {FULL_NODE_LINE}")), full());
    assert_eq!(typed(FULL_LINE).or(typed_for_a_node(FULL_NODE_LINE)), full());
}

#[test]
fn each_setting_has_its_meaning() {
    let config = Config::resolve(full(), "host").unwrap();
    let groups = [Selection { pattern: "vg0".parse().unwrap(), reserve: Bytes::mib(10 << 10) }];
    assert_eq!(
        config,
        Config {
            volume_groups: groups.into(),
            node_name: "n1".parse().unwrap(),
            endpoint: "/a/csi.sock".parse().unwrap(),
            health_address: Some("127.0.0.1:1".parse().unwrap()),
            run_directory: "/a/run".into(),
            backup_directory: "/a/backup".into(),
            lvm_locking_directory: "/a/lock".into(),
            lvm_patience: Duration::from_secs(45),
            grace_period: Duration::from_secs(90),
            log_filter: "debug".parse().unwrap(),
            log_format: LogFormat::Json,
            runtime_threads: NonZeroUsize::new(4).unwrap(),
        }
    );
}

#[test]
fn each_setting_of_a_node_has_its_meaning() {
    let config = NodeConfig::resolve(full(), "host").unwrap();
    assert_eq!(
        config,
        NodeConfig {
            driver: Config::resolve(full(), "host").unwrap(),
            controllers: Controllers::Name { host: "controllers".to_owned(), port: 9443 },
            ca_directory: "/a/ca".into(),
            token_file: "/a/token".into(),
            kubelet_directory: "/a/kubelet".parse().unwrap(),
        }
    );
}

#[test]
fn the_defaults_of_a_node_make_sense() {
    let line = "--volume-group vg0 --controller 10.0.0.1:9443";
    let config = NodeConfig::resolve(typed_for_a_node(line), "host").unwrap();
    assert_eq!(config.ca_directory, Path::new("/etc/quarry/ca"));
    assert_eq!(config.token_file, Path::new("/var/run/secrets/quarry/token"));
    assert_eq!(config.kubelet_directory.to_path(), Path::new("/var/lib/kubelet"));
    assert_eq!(config.driver.health_address, Some("[::]:9809".parse().unwrap()));
    let off = typed_for_a_node(&format!("{line} --health-address off"));
    assert_eq!(NodeConfig::resolve(off, "host").unwrap().driver.health_address, None);
}

#[test]
fn what_makes_no_sense_for_a_node_is_refused_with_its_name() {
    for (flag, name) in [
        ("--controller nowhere", "controller"),
        ("--controller a:1 --ca-directory ca", "ca-directory"),
        ("--controller a:1 --token-file token", "token-file"),
        ("--controller a:1 --kubelet-directory kubelet", "kubelet-directory"),
        ("--controller a:1 --kubelet-directory /", "kubelet-directory"),
    ] {
        match NodeConfig::resolve(typed_for_a_node(&format!("--volume-group vg0 {flag}")), "host") {
            Err(ConfigError::Setting { setting, .. }) => assert_eq!(setting, name, "{flag}"),
            other => panic!("{flag}: {other:?}"),
        }
    }
    let resolve = |line| NodeConfig::resolve(typed_for_a_node(line), "host");
    assert!(matches!(resolve("--volume-group vg0"), Err(ConfigError::NoController)));
    assert!(matches!(resolve("--controller a:1"), Err(ConfigError::NoVolumeGroup)));
}

#[test]
fn the_defaults_make_sense() {
    let config = Config::resolve(typed("--volume-group vg0"), "host.example").unwrap();
    assert_eq!(config.node_name.as_str(), "host.example");
    assert_eq!(config.endpoint.to_string(), default::ENDPOINT);
    assert_eq!(config.health_address, None);
    assert_eq!(config.lvm_locking_directory, Path::new("/run/lock/lvm"));
    assert_eq!(config.lvm_patience, Duration::from_secs(30));
    assert_eq!(config.grace_period, Duration::from_secs(300));
    assert_eq!(config.runtime_threads.get(), 2);
    assert_eq!(config.volume_groups[0].reserve, Bytes::ZERO);
}

#[test]
fn flags_win_over_the_file_setting_by_setting() {
    let both = typed("--node-name flag --volume-group a --volume-group b=1GiB").or(file(FULL_FILE));
    assert_eq!(both.node_name.as_deref(), Some("flag"));
    assert_eq!(both.endpoint, full().endpoint);
    let names: Vec<_> = both.volume_groups.unwrap().into_iter().map(|group| group.name).collect();
    assert_eq!(names, ["a", "b"], "the list is replaced whole");
    assert_eq!(Settings::default().or(full()), full());
    assert_eq!(full().or(Settings::default()), full());
}

#[test]
fn the_order_of_groups_is_kept_since_the_first_that_matches_counts() {
    let config = Config::resolve(typed("--volume-group data-1=5GiB,data-*"), "host").unwrap();
    let name: VgName = "data-1".parse().unwrap();
    let first = config.volume_groups.iter().find(|group| group.pattern.matches(&name)).unwrap();
    assert_eq!(first.reserve, Bytes::mib(5 << 10));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_name() {
    let cases = [
        ("--volume-group a/b", "volume-groups"),
        ("--volume-group vg0=much", "volume-groups"),
        ("--volume-group vg0=", "volume-groups"),
        (
            "--volume-group vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv",
            "volume-groups",
        ),
        ("--volume-group vg0 --endpoint tcp://1.2.3.4:5", "endpoint"),
        ("--volume-group vg0 --health-address 9809", "health-address"),
        ("--volume-group vg0 --run-directory run", "run-directory"),
        ("--volume-group vg0 --backup-directory x", "backup-directory"),
        ("--volume-group vg0 --lvm-locking-directory x", "lvm-locking-directory"),
        ("--volume-group vg0 --lvm-patience long", "lvm-patience"),
        ("--volume-group vg0 --lvm-patience 0s", "lvm-patience"),
        ("--volume-group vg0 --grace-period soon", "grace-period"),
        ("--volume-group vg0 --log inof", "log"),
        ("--volume-group vg0 --runtime-threads 0", "runtime-threads"),
        ("--volume-group vg0 --runtime-threads 65", "runtime-threads"),
    ];
    for (line, name) in cases {
        match Config::resolve(typed(line), "host") {
            Err(ConfigError::Setting { setting, .. }) => assert_eq!(setting, name, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert!(matches!(Config::resolve(Settings::default(), "host"), Err(ConfigError::NoVolumeGroup)));
    assert!(Config::resolve(typed("--volume-group vg0"), "").is_err(), "a host without a name");
}

#[test]
fn unknown_keys_in_a_file_are_refused() {
    for text in ["node_name = 'n1'", "volume-group = 'vg0'", "[[volume-groups]]\nname = 'a'\nreserved = '1'"]
    {
        assert!(toml::from_str::<Settings>(text).is_err(), "{text}");
    }
}

#[test]
fn a_reserve_has_a_unit() {
    let resolve = |reserve: &str| {
        let groups = vec![GroupSettings { name: "vg0".into(), reserve: Some(reserve.into()) }];
        Config::resolve(Settings { volume_groups: Some(groups), ..Settings::default() }, "host")
    };
    for text in ["0", "10GiB", "10 GiB", "10G", "4096B"] {
        assert!(resolve(text).is_ok(), "{text}");
    }
    for text in ["", "50", "10%", "x", "GiB"] {
        assert!(chain(&resolve(text).unwrap_err()).contains("as in 10GiB"), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("quarry.toml");
    let load = || Config::load(flags(&format!("--volume-group vg0 --config {}", path.display())));
    let shown = |error: ConfigError| error.to_string();
    assert!(shown(load().unwrap_err()).contains("quarry.toml cannot be read"));
    std::fs::write(&path, "node-name = 3").unwrap();
    assert!(shown(load().unwrap_err()).contains("quarry.toml is wrong"));
    std::fs::write(&path, "node-name = 'from-file'").unwrap();
    assert_eq!(load().unwrap().node_name.as_str(), "from-file");
}

#[test]
fn the_schema_holds_every_setting_and_nothing_else() {
    let schema = serde_json::to_value(schema()).unwrap();
    let typed = serde_json::to_value(full()).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&schema["properties"]), keys(&typed));
    assert_eq!(schema["additionalProperties"], false);
    let group = &schema["$defs"]["VolumeGroup"];
    assert_eq!(keys(&group["properties"]), keys(&typed["volume-groups"][0]));
    assert_eq!(group["additionalProperties"], false);
    assert!(!schema.to_string().contains("null"), "TOML has no null");
}
