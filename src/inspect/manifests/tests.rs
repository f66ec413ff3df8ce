use std::time::{Duration, SystemTime};

use super::super::volumes::Details;
use super::*;
use crate::types::{Bytes, FsType, MakeOptions};

const VG: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

/// A volume of a claim in the namespace `prod`, made so many seconds after some moment, if that is known.
fn volume(name: &str, claim: &str, state: VolumeState, made: Option<u64>) -> VolumeRow {
    let claim = Some(Claim { namespace: "prod".to_owned(), name: claim.to_owned() });
    let mode = VolumeMode::Filesystem(FsType::Ext4);
    VolumeRow {
        claim: claim.clone(),
        name: Some(name.to_owned()),
        handle: format!("{VG}/{name}"),
        volume_group: "quarry".to_owned(),
        logical_volume: name.to_owned(),
        size_bytes: Bytes::new(64 << 20),
        used_bytes: None,
        layout: "linear".to_owned(),
        mode: Some(mode.word()),
        state: Some(state.word()),
        places: Vec::new(),
        fault: None,
        details: Details {
            vg: VG.parse().unwrap(),
            tags: Some(VolumeTags {
                state,
                name: name.parse().unwrap(),
                mode,
                claim,
                cluster: None,
                make: MakeOptions::default(),
            }),
            created: made.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            age: None,
            suspended: false,
            partial: false,
        },
    }
}

fn used(name: &str, claim: &str, made: Option<u64>) -> VolumeRow {
    volume(name, claim, VolumeState::Used, made)
}

fn printed(volumes: &[VolumeRow]) -> String {
    manifests(volumes, "quarry", ReclaimPolicy::Retain).unwrap()
}

/// The names of PersistentVolumes.
fn named(text: &str) -> Vec<String> {
    let parts = text.split("---\n").skip(1).map(|part| serde_saphyr::from_str::<Value>(part).unwrap());
    let volumes = parts.filter(|part| part["kind"] == "PersistentVolume");
    volumes.map(|volume| volume["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_claim_that_was_made_anew_gets_its_last_volume() {
    let volumes = [used("pvc-a", "db", Some(1)), used("pvc-b", "db", Some(2)), used("pvc-c", "log", Some(0))];
    let text = printed(&volumes);
    assert_eq!(named(&text), ["pvc-b", "pvc-c"]);
    let left = "# left out: quarry/pvc-a of prod/db: quarry/pvc-b was made for its claim prod/db too, and not before it\n";
    assert!(text.contains(left), "{text}");
}

#[test]
fn a_volume_with_nothing_on_it_yet_may_be_the_last_one_too() {
    let blank = volume("pvc-b", "db", VolumeState::Blank, Some(2));
    assert_eq!(named(&printed(&[used("pvc-a", "db", Some(1)), blank])), [""; 0]);
}

#[test]
fn which_of_two_volumes_was_the_last_one_is_not_guessed() {
    for made in [[Some(1), Some(1)], [None, Some(1)], [None, None]] {
        let text = printed(&[used("pvc-a", "db", made[0]), used("pvc-b", "db", made[1])]);
        assert!(!named(&text).contains(&"pvc-a".to_owned()), "{text}");
        assert_eq!(text.matches("# left out: ").count(), 2, "{text}");
    }
}

#[test]
fn a_volume_of_no_claim_is_left_to_people() {
    let mut nobodys = used("pvc-a", "db", Some(1));
    nobodys.claim = None;
    let text = printed(&[nobodys.clone(), VolumeRow { handle: "other".to_owned(), ..nobodys }]);
    assert_eq!(text, "# left out: quarry/pvc-a: it was made for no claim\n".repeat(2));
}

#[test]
fn names_that_yaml_takes_for_something_else_stay_names() {
    let mut odd = used("pvc-a", "on", Some(1));
    odd.claim = Some(Claim { namespace: "007".to_owned(), name: "on".to_owned() });
    let text = printed(&[odd]);
    assert!(text.contains("# quarry/pvc-a: used\n"), "{text}");
    for line in ["  namespace: \"007\"\n", "  name: \"on\"\n"] {
        assert!(text.contains(line), "{line}{text}");
    }
}
