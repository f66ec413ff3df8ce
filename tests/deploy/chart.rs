//! The chart says the same as the code, and the rendered manifests the same as the chart.

use std::process::Command;

use quarry::cluster::AUDIENCE;
use quarry::config::{Config, Settings};
use quarry::csi::DRIVER_NAME;
use quarry::types::VG_KEY_PREFIX;

use super::{manifests, object, text, tools};

/// What the chart calls by a name, since a template cannot ask the code.
fn defined(name: &str) -> String {
    let helpers = text("deploy/chart/templates/_helpers.tpl");
    let start = format!("{{{{- define \"{name}\" -}}}}");
    let rest = helpers.split_once(&start).unwrap_or_else(|| panic!("{name} is not defined")).1;
    rest.split_once("{{-").unwrap().0.to_owned()
}

#[test]
fn names_are_those_of_the_code() {
    assert_eq!(defined("quarry.driver"), DRIVER_NAME);
    assert_eq!(defined("quarry.audience"), AUDIENCE);
    assert_eq!(defined("quarry.vgLabelPrefix"), format!("{VG_KEY_PREFIX}/"));
}

#[test]
fn versions_are_that_of_the_driver() {
    let chart = super::objects(&text("deploy/chart/Chart.yaml")).remove(0);
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_driver_reads_the_configuration_that_the_chart_writes() {
    let all = manifests();
    let config = object(&all, "ConfigMap", "quarry-config")["data"]["quarry.toml"].as_str().unwrap();
    let settings: Settings = toml::from_str(config).unwrap();
    let config = Config::resolve(settings, "node").unwrap();
    assert_eq!(config.volume_groups.len(), 1);
    assert_eq!(config.grace_period.as_secs(), 300);
}

#[test]
fn the_rendered_manifests_are_those_of_the_chart() {
    let output = Command::new(tools::built("deploy")).args(["manifests", "--check"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_sidecars_are_those_that_the_clusters_of_the_tests_run() {
    let all = manifests();
    let module = text("tests/cluster/go/go.mod");
    let images = ["csi-provisioner", "csi-resizer"]
        .map(|name| super::container(object(&all, "Deployment", "quarry-controller"), name)["image"].clone());
    for (image, module_path) in images.iter().zip(["external-provisioner/v6", "external-resizer/v2"]) {
        let version = image.as_str().unwrap().rsplit_once(':').unwrap().1;
        assert!(module.contains(&format!("kubernetes-csi/{module_path} {version}")), "{image}");
    }
}
