//! The examples: classes with parameters that the driver takes, and claims that use them.

use quarry::csi::DRIVER_NAME;
use quarry::types::{ClassParameters, PARAMETERS};
use serde_json::Value;

use super::{list, objects, text};

const CLASSES: &str = "deploy/examples/storageclasses.yaml";
const USERS: [&str; 2] = ["deploy/examples/claim.yaml", "deploy/examples/statefulset.yaml"];

#[test]
fn the_driver_takes_the_parameters_of_the_classes() {
    let classes = objects(&text(CLASSES));
    assert!(classes.len() >= 3);
    for class in classes {
        assert_eq!(class["kind"], "StorageClass");
        assert_eq!(class["provisioner"], DRIVER_NAME);
        assert_eq!(class["volumeBindingMode"], "WaitForFirstConsumer");
        assert_eq!(class["allowVolumeExpansion"], true);
        let parameters = class["parameters"].as_object().cloned().unwrap_or_default();
        let parameters = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap()));
        ClassParameters::parse(parameters).unwrap();
    }
}

#[test]
fn the_claims_name_classes_that_are_there() {
    let classes = objects(&text(CLASSES));
    let named = |claim: &Value| {
        let class = &claim["spec"]["storageClassName"];
        assert!(classes.iter().any(|known| known["metadata"]["name"] == *class), "{class}");
    };
    let mut claims = 0;
    for object in USERS.iter().flat_map(|file| objects(&text(file))) {
        if object["kind"] == "PersistentVolumeClaim" {
            named(&object);
            claims += 1;
        }
        for template in list(&object["spec"]["volumeClaimTemplates"]) {
            named(template);
            claims += 1;
        }
    }
    assert_eq!(claims, 3);
}

#[test]
fn the_documentation_has_every_parameter_in_the_words_of_the_table() {
    let page = text("docs/kubernetes.md");
    for parameter in &PARAMETERS {
        let row = format!("| `{}` | {} |", parameter.key, parameter.help);
        assert!(page.contains(&row), "docs/kubernetes.md lacks: {row}");
    }
}
