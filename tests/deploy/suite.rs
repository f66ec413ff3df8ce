//! What Kubernetes' own storage tests are told of Quarry: `tests/cluster/e2e`. The tests ignore what they do not know, and
//! run fewer specs then without a word, so it is held against the driver here.

use std::collections::BTreeMap;

use quarry::csi::{CONTROLLER, DRIVER_NAME, NODE};
use quarry::proto::csi::v1 as csi;
use quarry::types::{FsType, NODE_KEY};
use serde_json::Value;

use super::{objects, text};

use csi::controller_service_capability::rpc::Type as OfController;
use csi::node_service_capability::rpc::Type as OfNode;

fn driver() -> Value {
    objects(&text("tests/cluster/e2e/testdriver.yaml")).remove(0)["DriverInfo"].take()
}

fn keys(set: &Value) -> Vec<&str> {
    set.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_suite_knows_the_driver_by_its_names() {
    let driver = driver();
    assert_eq!(driver["Name"], DRIVER_NAME);
    assert_eq!(driver["TopologyKeys"], serde_json::json!([NODE_KEY]));
    let class = objects(&text("tests/cluster/e2e/storageclass.yaml")).remove(0);
    assert_eq!(class["provisioner"], DRIVER_NAME);
}

#[test]
fn what_it_says_of_the_driver_is_what_the_driver_offers() {
    let controller = |rpc: OfController| CONTROLLER.contains(&rpc);
    let node = |rpc: OfNode| NODE.contains(&rpc);
    let grows = controller(OfController::ExpandVolume);
    let wanted = BTreeMap::from([
        ("persistence", true),
        ("block", true),
        ("fsGroup", true),
        ("exec", true),
        ("topology", true),
        ("singleNodeVolume", true),
        ("multiplePVsSameID", true),
        ("readWriteOncePod", controller(OfController::SingleNodeMultiWriter)),
        ("multipods", node(OfNode::SingleNodeMultiWriter)),
        ("capacity", controller(OfController::GetCapacity)),
        ("controllerExpansion", grows),
        ("onlineExpansion", grows),
        ("offlineExpansion", grows),
        ("nodeExpansion", node(OfNode::ExpandVolume)),
        ("volumeMountGroup", node(OfNode::VolumeMountGroup)),
        ("snapshotDataSource", controller(OfController::CreateDeleteSnapshot)),
        ("pvcDataSource", controller(OfController::CloneVolume)),
        ("RWX", false),
        ("capReadOnlyMany", false),
        ("volumeLimits", false),
        ("groupSnapshot", false),
        ("snapshotMetadata", false),
        ("seLinuxMount", false),
    ]);
    let driver = driver();
    let said: BTreeMap<&str, bool> = keys(&driver["Capabilities"])
        .into_iter()
        .map(|key| (key, driver["Capabilities"][key].as_bool().unwrap()))
        .collect();
    assert_eq!(said, wanted);
}

#[test]
fn its_file_systems_and_mount_options_are_the_drivers() {
    let driver = driver();
    let known: Vec<_> = FsType::ALL.iter().map(|fs| fs.name()).collect();
    let named: Vec<_> =
        keys(&driver["SupportedFsType"]).into_iter().filter(|name| !name.is_empty()).collect();
    assert!(!named.is_empty() && named.iter().all(|name| known.contains(name)), "{named:?}");
    let options = keys(&driver["SupportedMountOption"]);
    assert!(!options.is_empty());
    for option in options {
        for fs in FsType::ALL {
            assert!(fs.mount_options().any(|allowed| allowed == option), "{option} of {}", fs.name());
        }
    }
}
