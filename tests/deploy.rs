//! What Quarry is installed from: the image, the chart, the examples.
//!
//! Nothing in `deploy/` may say again what the code says: where it must, it is compared here.

mod access;
mod admission;
mod apply;
mod calls;
mod chart;
mod classes;
mod container;
mod controller;
mod flags;
mod image;
mod node;
mod objects;
mod server;
mod sidecars;
mod suite;
mod tools;
mod values;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Its text.
pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The objects of a YAML text.
fn objects(yaml: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

/// The rendered manifests.
fn manifests() -> Vec<Value> {
    objects(&text("deploy/manifests/quarry.yaml"))
}

/// The object of that kind and name.
fn object<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    all.iter().find(is_it).unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The container of that name in a Deployment or DaemonSet.
fn container<'a>(workload: &'a Value, name: &str) -> &'a Value {
    let containers = list(&pod(workload)["containers"]);
    containers.iter().find(|container| container["name"] == name).unwrap()
}

/// The pods of a Deployment or DaemonSet.
fn pod(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]
}

/// The items of a list; none where there is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(|text| text.as_str().unwrap()).collect()
}
