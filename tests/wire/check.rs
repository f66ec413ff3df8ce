//! Is our wire contract the specification's?
//!
//! A small Go program (`main.go` beside this file) prints the descriptors that
//! the specification publishes; `proto/` is compiled anew here. Both become the
//! same flat table, full name to facts, and must be equal: every message, field,
//! number, type, enum, method and mark such as `csi_secret`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, MessageDescriptor, OneofDescriptor, ServiceDescriptor,
};
use serde_json::{Value, json};

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
const GO_PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire");
const CSI: &str = "csi/v1/csi.proto";
/// Enough to fetch and build the Go program on a cold machine.
const GO_DEADLINE: Duration = Duration::from_secs(300);

/// Full name of every named thing of the package, to what the wire needs to know of it.
type Contract = BTreeMap<String, Value>;

#[tokio::test]
async fn csi_proto_is_the_published_contract() {
    let published = published().await.expect("the specification's descriptors");
    let ours = compile(Path::new(PROTO)).expect("our descriptors");
    assert!(published.len() > 500, "only {} names published", published.len());
    let found = differences(&published, &ours);
    assert!(found.is_empty(), "proto/{CSI} differs:\n{}", found.join("\n"));
}

#[test]
fn a_changed_contract_is_seen() {
    let changes = [
        ("int64 limit_bytes = 2;", "int64 limit_bytes = 3;", "csi.v1.CapacityRange.limit_bytes: "),
        ("bool ready_to_use = 5;", "int32 ready_to_use = 5;", "csi.v1.Snapshot.ready_to_use: "),
        ("  reserved 4;\n", "", "csi.v1.NodeServiceCapability.RPC.Type: "),
        (" [(csi_secret) = true];", ";", "csi.v1.CreateVolumeRequest.secrets: "),
        ("BYTES = 1;", "OCTETS = 1;", "csi.v1.VolumeUsage.BYTES: missing"),
        ("(ProbeResponse)", "(stream ProbeResponse)", "csi.v1.Identity.Probe: "),
        ("message ProbeRequest {}", "message ProbeRequest { bool b = 1; }", "csi.v1.ProbeRequest.b: not in"),
    ];
    let published = compile(Path::new(PROTO)).expect("our descriptors");
    for (from, to, expected) in changes {
        let found = differences(&published, &compile_changed(from, to).expect("changed descriptors"));
        assert!(found.iter().any(|line| line.starts_with(expected)), "{from} made {to}: {found:?}");
    }
}

/// Every name whose facts are not the same on both sides, one line each.
fn differences(published: &Contract, ours: &Contract) -> Vec<String> {
    let names: BTreeSet<_> = published.keys().chain(ours.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| match (published.get(name), ours.get(name)) {
            (Some(theirs), Some(own)) if theirs == own => None,
            (Some(theirs), Some(own)) => Some(format!("{name}: {own} should be {theirs}")),
            (Some(theirs), None) => Some(format!("{name}: missing, should be {theirs}")),
            (None, own) => Some(format!("{name}: not in the specification: {own:?}")),
        })
        .collect()
}

/// Runs the Go program. Without Go, or without its modules, this is an error, never a skip.
async fn published() -> Result<Contract, Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "a test's own tool, not a program of the driver")]
    let mut go = tokio::process::Command::new("go");
    go.args(["run", "-mod=readonly", "-buildvcs=false", "."]).current_dir(GO_PROGRAM).kill_on_drop(true);
    let output = tokio::time::timeout(GO_DEADLINE, go.output())
        .await
        .map_err(|_| format!("go run in {GO_PROGRAM} took over {GO_DEADLINE:?}"))?
        .map_err(|error| format!("cannot start go, which this test needs: {error}"))?;
    if !output.status.success() {
        return Err(format!("go run: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Compiles a copy of our file in which the first `from` reads `to`.
fn compile_changed(from: &str, to: &str) -> Result<Contract, Box<dyn Error>> {
    let text = std::fs::read_to_string(Path::new(PROTO).join(CSI))?;
    assert!(text.contains(from), "{from} is not in {CSI}");
    let dir = tempfile::tempdir()?;
    let copy = dir.path().join(CSI);
    std::fs::create_dir_all(copy.parent().ok_or("no parent")?)?;
    std::fs::write(&copy, text.replacen(from, to, 1))?;
    compile(dir.path())
}

fn compile(root: &Path) -> Result<Contract, Box<dyn Error>> {
    let mut compiler = protox::Compiler::new([root])?;
    compiler.include_imports(true).open_file(CSI)?;
    Ok(contract(&compiler.descriptor_pool()))
}

fn contract(pool: &DescriptorPool) -> Contract {
    let mut found = Contract::new();
    pool.all_messages().for_each(|message| add_message(&mut found, &message));
    pool.all_enums().for_each(|declared| add_enum(&mut found, &declared));
    pool.services().for_each(|service| add_service(&mut found, &service));
    for extension in pool.all_extensions() {
        let facts = json!({
            "kind": "extension", "number": extension.number(),
            "type": format!("{:?}", extension.kind()),
            "repeated": extension.is_list(), "map": false, "oneof": "",
            "options": options(&extension.options()),
            "extends": extension.containing_message().full_name(),
        });
        found.insert(extension.full_name().to_owned(), facts);
    }
    found.retain(|name, _| name.starts_with("csi.v1."));
    found
}

fn add_message(found: &mut Contract, message: &MessageDescriptor) {
    // The descriptor's ranges have an exclusive end.
    let reserved: Vec<_> = message.reserved_ranges().map(|r| [r.start, r.end - 1]).collect();
    let facts = json!({ "kind": "message", "options": options(&message.options()), "reserved": reserved });
    found.insert(message.full_name().to_owned(), facts);
    for field in message.fields() {
        let oneof = field.containing_oneof();
        let facts = json!({
            "kind": "field", "number": field.number(), "type": format!("{:?}", field.kind()),
            "repeated": field.is_list() || field.is_map(), "map": field.is_map(),
            "oneof": oneof.as_ref().map_or("", OneofDescriptor::name),
            "options": options(&field.options()),
        });
        found.insert(field.full_name().to_owned(), facts);
    }
}

fn add_enum(found: &mut Contract, declared: &EnumDescriptor) {
    let reserved: Vec<_> = declared.reserved_ranges().map(|r| [*r.start(), *r.end()]).collect();
    let facts = json!({ "kind": "enum", "options": options(&declared.options()), "reserved": reserved });
    found.insert(declared.full_name().to_owned(), facts);
    for value in declared.values() {
        let facts = json!({
            "kind": "value", "number": value.number(), "enum": declared.full_name(),
            "options": options(&value.options()),
        });
        found.insert(value.full_name().to_owned(), facts);
    }
}

fn add_service(found: &mut Contract, service: &ServiceDescriptor) {
    let facts = json!({ "kind": "service", "options": options(&service.options()) });
    found.insert(service.full_name().to_owned(), facts);
    for method in service.methods() {
        let facts = json!({
            "kind": "method", "input": method.input().full_name(), "output": method.output().full_name(),
            "client_stream": method.is_client_streaming(), "server_stream": method.is_server_streaming(),
            "options": options(&method.options()),
        });
        found.insert(method.full_name().to_owned(), facts);
    }
}

/// The specification's own marks, such as `csi_secret`, with their values.
fn options(set: &DynamicMessage) -> Vec<String> {
    let mut marks: Vec<_> =
        set.extensions().map(|(mark, value)| format!("{}={value}", mark.full_name())).collect();
    marks.sort();
    marks
}
