//! Ids that are none, in every call: nothing is made of them.

use std::path::Path;

use quarry::proto::csi::v1 as csi;
use tonic::{Code, Request, Status};

use super::support::with_driver;
use crate::driver::{Client, Driver, MIB, Mode};

/// Where nothing may come to be.
const PATH: &str = "/var/lib/kubelet/of-nobody";

/// How many programs the driver has run, but for looks at disks and backups, for which it has its own reasons.
fn programs(driver: &Driver) -> usize {
    let own = ["lvm pvs", "vgcfgbackup"];
    let log = driver.log().text();
    log.lines().filter(|line| line.contains("running") && !own.iter().any(|word| line.contains(word))).count()
}

/// What every call that takes an id answers to this one.
async fn answers(client: &Client, id: &str) -> Vec<(&'static str, Result<(), Status>)> {
    let (mut caller, path) = (client.clone(), Path::new(PATH));
    let validate = csi::ValidateVolumeCapabilitiesRequest {
        volume_id: id.to_owned(),
        volume_capabilities: vec![Mode::Ext4.capability()],
        ..Default::default()
    };
    let validated = client.clone().controller.validate_volume_capabilities(Request::new(validate)).await;
    vec![
        ("delete", caller.delete(id).await),
        ("validate", validated.map(drop)),
        ("expand", caller.expand(id, 64 * MIB, Mode::Ext4).await.map(drop)),
        ("stage", caller.stage(id, path, Mode::Ext4).await),
        ("publish", caller.publish(id, path, path, Mode::Ext4).await),
        ("stats", caller.stats(id, path).await.map(drop)),
        ("node expand", caller.node_expand(id, path, 64 * MIB).await.map(drop)),
        ("unpublish", caller.unpublish(id, path).await),
        ("unstage", caller.unstage(id, path).await),
    ]
}

#[test]
fn an_id_that_is_none_starts_no_program_and_touches_no_path() {
    with_driver(async |driver, client| {
        client.clone().capacity().await.unwrap();
        let before = programs(&driver);
        let long = "x".repeat(4096);
        for id in ["../x", "vg/../../etc", "-y", "vg/lv;rm", "vg0/lv\nlvremove vg0", "a\0b", &long] {
            for (call, answer) in answers(&client, id).await {
                let code = answer.as_ref().err().map(Status::code);
                let expected = (call != "delete").then_some(Code::NotFound);
                assert_eq!(code, expected, "{call} {id:.20}: {answer:?}");
            }
        }
        assert_eq!(programs(&driver), before);
        assert!(!Path::new(PATH).exists());
    });
}
