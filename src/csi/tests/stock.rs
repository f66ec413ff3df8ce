//! What a controller asks of a node besides CSI.

use super::*;
use crate::proto::quarry::v1 as quarry;
use quarry::stock_server::Stock as _;

const CLUSTER: &str = "3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f11";

/// A create that a controller passed on.
fn passed_on(name: &str, mib: i64) -> Request<proto::CreateVolumeRequest> {
    let mut request = Request::new(create(name, mib));
    request.metadata_mut().insert(convert::CLUSTER, CLUSTER.parse().unwrap());
    let claim = [("pvc/name", "db"), ("pvc/namespace", "prod")];
    let claim = claim.map(|(key, value)| (format!("csi.storage.k8s.io/{key}"), value.to_owned()));
    request.get_mut().parameters.extend(claim);
    request
}

async fn find(f: &Fixture, name: &str) -> Vec<String> {
    let request = quarry::FindRequest { name: name.to_owned() };
    f.stock.find(Request::new(request)).await.unwrap().into_inner().volume_ids
}

async fn unused(f: &Fixture, age_seconds: u64) -> Vec<quarry::UnusedVolume> {
    let request = quarry::ListUnusedRequest { age_seconds };
    f.stock.list_unused(Request::new(request)).await.unwrap().into_inner().volumes
}

fn removal(of: &quarry::UnusedVolume) -> quarry::RemoveUnusedRequest {
    quarry::RemoveUnusedRequest {
        volume_id: of.volume_id.clone(),
        lv_uuid: of.lv_uuid.clone(),
        cluster: of.cluster.clone(),
        age_seconds: 0,
    }
}

#[tokio::test]
async fn a_volume_is_found_by_the_name_that_it_was_made_by() {
    let f = fixture().await;
    assert!(find(&f, "strange name").await.is_empty());
    let made = f.controller.create_volume(Request::new(create("strange name", 8))).await.unwrap();
    let id = made.into_inner().volume.unwrap().volume_id;
    assert_eq!(find(&f, "strange name").await, [id]);
    assert!(find(&f, "another name").await.is_empty());
    assert_eq!(code(f.stock.find(Request::new(Default::default())).await), Code::InvalidArgument);
}

#[tokio::test]
async fn volumes_that_were_never_used_are_listed_with_what_is_known_of_them() {
    let f = fixture().await;
    f.controller.create_volume(passed_on("pvc-1", 8)).await.unwrap();
    f.controller.create_volume(Request::new(create("by hand", 8))).await.unwrap();
    let listed = unused(&f, 0).await;
    let known = listed.iter().find(|volume| volume.name == "pvc-1").unwrap();
    assert_eq!((known.claim_namespace.as_str(), known.claim_name.as_str()), ("prod", "db"));
    assert_eq!((known.cluster.as_str(), known.size_bytes), (CLUSTER, 8 << 20));
    let other = listed.iter().find(|volume| volume.name == "by hand").unwrap();
    assert!(other.claim_name.is_empty() && other.cluster.is_empty());
    assert!(unused(&f, 3600).await.is_empty(), "they are young");
}

#[tokio::test]
async fn only_that_very_volume_is_removed_as_unused() {
    let f = fixture().await;
    f.controller.create_volume(passed_on("pvc-1", 8)).await.unwrap();
    let volume = unused(&f, 0).await.remove(0);
    let good = removal(&volume);
    let other = "Yvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".to_owned();
    for wrong in [
        quarry::RemoveUnusedRequest { lv_uuid: other, ..good.clone() },
        quarry::RemoveUnusedRequest { cluster: "another".to_owned(), ..good.clone() },
        quarry::RemoveUnusedRequest { age_seconds: 3600, ..good.clone() },
    ] {
        assert_eq!(code(f.stock.remove_unused(Request::new(wrong)).await), Code::FailedPrecondition);
    }
    for malformed in [
        quarry::RemoveUnusedRequest { cluster: String::new(), ..good.clone() },
        quarry::RemoveUnusedRequest { lv_uuid: String::new(), ..good.clone() },
    ] {
        assert_eq!(code(f.stock.remove_unused(Request::new(malformed)).await), Code::InvalidArgument);
    }
    assert_eq!(find(&f, "pvc-1").await.len(), 1);
    f.stock.remove_unused(Request::new(good)).await.unwrap();
    assert!(find(&f, "pvc-1").await.is_empty());
}
