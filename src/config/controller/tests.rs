use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser};

use super::*;
use crate::config::schema_of;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: ControllerFlags,
}

/// Reads a command line, whatever the environment of the tests is.
fn typed(line: &str) -> ControllerSettings {
    let command = Line::command().mut_args(|arg| arg.env(Resettable::Reset));
    let words = std::iter::once("quarry").chain(line.split_whitespace());
    let matches = command.try_get_matches_from(words).unwrap();
    Line::from_arg_matches(&matches).unwrap().flags.into_settings().1
}

/// Every setting. A new one does not compile until it is here, and so in the tests below.
fn full() -> ControllerSettings {
    ControllerSettings {
        endpoint: Some("unix:///a/csi.sock".into()),
        link_address: Some("127.0.0.1:1".into()),
        health_address: Some("[::1]:2".into()),
        namespace: Some("storage".into()),
        node_service_account: Some("nodes".into()),
        pod_name: Some("pod-1".into()),
        pod_uid: Some("uid".into()),
        ca_secret: Some("keys".into()),
        ca_config_map: Some("certs".into()),
        lost_config_map: Some("losses".into()),
        collect_orphans: Some(true),
        grace_period: Some("90s".into()),
        log: Some("debug".into()),
        log_format: Some(LogFormat::Json),
        runtime_threads: Some(4),
    }
}

const FULL_FILE: &str = r#"
    endpoint = "unix:///a/csi.sock"
    link-address = "127.0.0.1:1"
    health-address = "[::1]:2"
    namespace = "storage"
    node-service-account = "nodes"
    pod-name = "pod-1"
    pod-uid = "uid"
    ca-secret = "keys"
    ca-config-map = "certs"
    lost-config-map = "losses"
    collect-orphans = true
    grace-period = "90s"
    log = "debug"
    log-format = "json"
    runtime-threads = 4
"#;

const FULL_LINE: &str = "--endpoint unix:///a/csi.sock --link-address 127.0.0.1:1 --health-address [::1]:2 \
    --namespace storage --node-service-account nodes --pod-name pod-1 --pod-uid uid --ca-secret keys \
    --ca-config-map certs --lost-config-map losses --collect-orphans --grace-period 90s --log debug --log-format json --runtime-threads 4";

const LEAST: &str = "--namespace storage --pod-name pod-1";

#[test]
fn a_file_and_a_command_line_can_say_the_same() {
    assert_eq!(toml::from_str::<ControllerSettings>(FULL_FILE).unwrap(), full());
    assert_eq!(typed(FULL_LINE), full());
}

#[test]
fn each_setting_has_its_meaning() {
    assert_eq!(
        ControllerConfig::resolve(full()).unwrap(),
        ControllerConfig {
            endpoint: "/a/csi.sock".parse().unwrap(),
            link_address: "127.0.0.1:1".parse().unwrap(),
            health_address: "[::1]:2".parse().unwrap(),
            namespace: "storage".into(),
            node_service_account: "nodes".into(),
            pod_name: "pod-1".parse().unwrap(),
            pod_uid: Some("uid".into()),
            authority: Names { secret: "keys".into(), config_map: "certs".into() },
            lost_config_map: "losses".into(),
            collect_orphans: true,
            grace_period: Duration::from_secs(90),
            log_filter: "debug".parse().unwrap(),
            log_format: LogFormat::Json,
            runtime_threads: NonZeroUsize::new(4).unwrap(),
        }
    );
}

#[test]
fn the_defaults_make_sense() {
    let config = ControllerConfig::resolve(typed(LEAST)).unwrap();
    assert_eq!(config.link_address.port(), 9443);
    assert_eq!(config.health_address.port(), 9808);
    assert_eq!(config.node_service_account, "quarry-node");
    assert_eq!(config.authority, Names { secret: "quarry-ca".into(), config_map: "quarry-ca".into() });
    assert!(!config.collect_orphans && config.lost_config_map == "quarry-lost");
    assert_eq!(config.grace_period, Duration::from_secs(120));
}

#[test]
fn flags_win_over_the_file_setting_by_setting() {
    let file: ControllerSettings = toml::from_str(FULL_FILE).unwrap();
    let both = typed("--namespace other --collect-orphans=false").or(file);
    assert_eq!(both.namespace.as_deref(), Some("other"));
    assert_eq!(both.collect_orphans, Some(false));
    assert_eq!(both.endpoint, full().endpoint);
    assert_eq!(ControllerSettings::default().or(full()), full());
}

#[test]
fn what_makes_no_sense_is_refused_with_its_name() {
    for (line, name) in [
        ("--link-address 9443", "link-address"),
        ("--health-address host:1", "health-address"),
        ("--namespace a/b", "namespace"),
        ("--pod-name A", "pod-name"),
        ("--node-service-account a:b", "node-service-account"),
        ("--ca-secret ../x", "ca-secret"),
        ("--ca-config-map X", "ca-config-map"),
        ("--lost-config-map a/b", "lost-config-map"),
        ("--endpoint tcp://1.2.3.4:5", "endpoint"),
        ("--grace-period soon", "grace-period"),
        ("--log inof", "log"),
        ("--runtime-threads 0", "runtime-threads"),
    ] {
        let settings = typed(line).or(typed(LEAST));
        match ControllerConfig::resolve(settings) {
            Err(ConfigError::Setting { setting, .. }) => assert_eq!(setting, name, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn what_has_no_default_is_asked_for() {
    for (line, name) in [("--namespace storage", "pod-name"), ("--pod-name pod-1", "namespace")] {
        match ControllerConfig::resolve(typed(line)) {
            Err(ConfigError::Missing { setting }) => assert_eq!(setting, name),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn the_schema_holds_every_setting_and_nothing_else() {
    let schema = serde_json::to_value(schema_of::<ControllerSettings>()).unwrap();
    let typed = serde_json::to_value(full()).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&schema["properties"]), keys(&typed));
    assert_eq!(schema["additionalProperties"], false);
    assert!(!schema.to_string().contains("null"), "TOML has no null");
}
