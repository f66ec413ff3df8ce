//! Whatever a caller hands over in confidence stays out of the log, however much is logged.

use std::collections::HashMap;

use quarry::proto::csi::v1 as csi;

use super::support::boot;
use crate::driver::{Driver, MIB, Mode, SIZE, VG, Volume};

/// As somebody's password might be.
const SECRET: &str = "correct-horse-battery-staple";

fn secrets() -> HashMap<String, String> {
    HashMap::from([("password".to_owned(), SECRET.to_owned())])
}

fn range(size: u64) -> Option<csi::CapacityRange> {
    Some(csi::CapacityRange { required_bytes: size.cast_signed(), limit_bytes: 0 })
}

#[test]
fn secrets_and_whole_requests_are_never_logged() {
    boot(async || {
        let driver = Driver::start_with(&["--volume-group", VG, "--log", "trace"]).await;
        let mut client = driver.client().await;
        let context = HashMap::from([("unasked-for".to_owned(), SECRET.to_owned())]);
        let capability = Some(Mode::Ext4.capability());
        for name in ["pvc-a", ""] {
            let create = csi::CreateVolumeRequest {
                name: name.to_owned(),
                capacity_range: range(SIZE),
                volume_capabilities: vec![Mode::Ext4.capability()],
                secrets: secrets(),
                ..Default::default()
            };
            assert_eq!(client.create_with(create).await.is_ok(), !name.is_empty());
        }
        let volume = Volume::existing(&client, "pvc-a", Mode::Ext4);
        let (id, staging) = (volume.id.clone(), volume.staging.to_str().unwrap().to_owned());
        let target = volume.target.to_str().unwrap().to_owned();
        let stage = csi::NodeStageVolumeRequest {
            volume_id: id.clone(),
            staging_target_path: staging.clone(),
            volume_capability: capability.clone(),
            secrets: secrets(),
            volume_context: context.clone(),
            ..Default::default()
        };
        client.node.node_stage_volume(stage).await.unwrap();
        client
            .publish_with(csi::NodePublishVolumeRequest {
                volume_id: id.clone(),
                staging_target_path: staging,
                target_path: target.clone(),
                volume_capability: capability.clone(),
                secrets: secrets(),
                volume_context: context,
                ..Default::default()
            })
            .await
            .unwrap();
        let grow = csi::ControllerExpandVolumeRequest {
            volume_id: id.clone(),
            capacity_range: range(2 * SIZE),
            secrets: secrets(),
            ..Default::default()
        };
        client.controller.controller_expand_volume(grow).await.unwrap();
        let grow = csi::NodeExpandVolumeRequest {
            volume_id: id.clone(),
            volume_path: target,
            capacity_range: range(2 * SIZE + 4 * MIB),
            volume_capability: capability,
            secrets: secrets(),
            ..Default::default()
        };
        client.node.node_expand_volume(grow).await.unwrap();
        volume.end().await;
        let delete = csi::DeleteVolumeRequest { volume_id: id, secrets: secrets() };
        client.controller.delete_volume(delete).await.unwrap();
        let log = driver.log().text();
        assert!(log.contains("TRACE") && log.contains("DeleteVolume"), "everything is logged: {log}");
        assert!(!log.contains(SECRET) && !log.contains("unasked-for"), "{log}");
    });
}
