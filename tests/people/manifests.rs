use serde_json::{Value, json};

use super::support::{boot, claimed, quarry, told};
use crate::driver::{Driver, MIB, Mode, VG, Volume, report};

const PV: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";

fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("---\n").skip(1);
    parts.map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}: {part}"))).collect()
}

fn printed(policy: &[&str]) -> Vec<Value> {
    let arguments = ["volumes", "--volume-group", VG, "--manifests", "--storage-class", "fast"];
    documents(&told(&[&arguments, policy].concat()))
}

fn storage(mode: Mode) -> String {
    format!("{}Mi", mode.size() / MIB)
}

/// What csi-provisioner writes of a volume, in what matters after a cluster is gone.
fn expected(volume: &Volume, vg: &str, mode: Mode, policy: &str) -> Value {
    let mut csi = json!({"driver": "lvm.csi.quarry", "volumeHandle": volume.id});
    if mode != Mode::Block {
        csi["fsType"] = mode.word().into();
    }
    json!({
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": storage(mode)},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "prod", "name": "db-0"},
        "csi": csi,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": format!("vg.lvm.csi.quarry/{vg}"), "operator": "In", "values": ["true"]},
        ]}]}},
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": "fast",
        "volumeMode": if mode == Mode::Block { "Block" } else { "Filesystem" },
    })
}

#[test]
fn manifests_bring_back_volumes_and_claims_from_tags_alone() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        for mode in Mode::ALL {
            let volume = claimed(&client, PV, "db-0", mode).await;
            volume.start().await;
            volume.end().await;
            let vg = report("vgs", "vg_uuid", VG).remove(0);
            let documents = printed(&[]);
            let [pv, claim] = documents.as_slice() else { panic!("{documents:?}") };
            assert_eq!((&pv["apiVersion"], &pv["kind"]), (&"v1".into(), &"PersistentVolume".into()));
            let metadata =
                json!({"name": PV, "annotations": {"pv.kubernetes.io/provisioned-by": "lvm.csi.quarry"}});
            assert_eq!(pv["metadata"], metadata);
            assert_eq!(pv["spec"], expected(&volume, &vg, mode, "Retain"), "what is not asked for is kept");
            assert_eq!(claim["metadata"], json!({"namespace": "prod", "name": "db-0"}));
            assert_eq!(claim["kind"], "PersistentVolumeClaim");
            assert_eq!(
                claim["spec"],
                json!({
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": storage(mode)}},
                    "storageClassName": "fast",
                    "volumeMode": pv["spec"]["volumeMode"],
                    "volumeName": PV,
                })
            );
            let documents = printed(&["--reclaim-policy", "delete"]);
            assert_eq!(documents[0]["spec"], expected(&volume, &vg, mode, "Delete"));
            volume.delete().await.unwrap();
        }
    });
}

#[test]
fn what_cannot_be_brought_back_is_told_and_left_out() {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        let nobodys = Volume::create(&client, "Nobody's volume", Mode::Ext4).await;
        let blank = claimed(&client, "pvc-blank", "blank", Mode::Block).await;
        let strange = claimed(&client, "pvc-strange", "strange", Mode::Block).await;
        for volume in [&nobodys, &blank, &strange] {
            volume.prepared().await;
        }
        driver.kill();
        blank.retag("q.s=f", "q.s=b");
        strange.retag("q.v=1", "q.v=9");
        let arguments = ["volumes", "--manifests", "--storage-class", "fast"];
        let text = told(&arguments);
        for line in [
            format!("# left out: {}: it was made for no claim", nobodys.lv()),
            format!("# left out: {} of prod/blank: it holds nothing yet", blank.lv()),
            format!("# left out: {}: its tags have version 9", strange.lv()),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert_eq!(documents(&text), [] as [Value; 0]);
        let without = quarry(&arguments[..2]);
        assert_eq!(without.code, 64, "{without:?}");
        assert!(without.errors.contains("--storage-class <NAME>"), "{without:?}");
    });
}
