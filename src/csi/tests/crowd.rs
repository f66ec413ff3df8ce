//! Many calls at once in two groups. The machine in memory panics where two changes of one group overlap.

use super::*;

/// A create in that group.
fn in_group(name: &str, group: &str) -> proto::CreateVolumeRequest {
    let parameters = [("volumeGroup".to_owned(), group.to_owned())].into();
    proto::CreateVolumeRequest { parameters, ..create(name, 4) }
}

/// Makes, grows and deletes a volume, and gives its id.
async fn live(controller: Controller, name: String, group: &'static str) -> String {
    let created = loop {
        let answer = controller.create_volume(Request::new(in_group(&name, group))).await;
        if let Some(created) = done(answer) {
            break created;
        }
        tokio::task::yield_now().await;
    };
    let volume_id = created.volume.unwrap().volume_id;
    let range = Some(proto::CapacityRange { required_bytes: 4 << 20, limit_bytes: 0 });
    let growth = proto::ControllerExpandVolumeRequest {
        volume_id: volume_id.clone(),
        capacity_range: range,
        ..Default::default()
    };
    // There is no device here, so that nothing becomes of it but the changes before.
    drop(controller.controller_expand_volume(Request::new(growth)).await);
    let question = proto::GetCapacityRequest::default();
    controller.get_capacity(Request::new(question)).await.unwrap();
    let deletion = proto::DeleteVolumeRequest { volume_id: volume_id.clone(), ..Default::default() };
    while done(controller.delete_volume(Request::new(deletion.clone())).await).is_none() {
        tokio::task::yield_now().await;
    }
    volume_id
}

/// What came of a call; nothing where it is to come again.
fn done<T>(answer: Result<Response<T>, Status>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer.into_inner()),
        Err(status) if status.code() == Code::Aborted => None,
        Err(status) => panic!("{status}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_group_has_one_writer_at_a_time_and_all_that_is_made_is_removed() {
    let f = fixture_of(&["vg0", "vg1"]).await;
    let tracker = TaskTracker::new();
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let group = ["vg0", "vg1"][number % 2];
            tracker.spawn(live(f.controller.clone(), format!("pvc-{number}"), group))
        })
        .collect();
    let mut groups = std::collections::BTreeSet::new();
    for call in calls {
        let id = call.await.unwrap();
        groups.insert(id.split('/').next().unwrap().to_owned());
    }
    assert_eq!(groups.len(), 2);
    let changes = f.lvm.changes();
    assert!(changes.len() >= 100, "{changes:?}");
    for group in ["vg0", "vg1"] {
        assert_eq!(f.lvm.edit(group, |vg| vg.lvs.len()), 0, "{group}");
    }
}
