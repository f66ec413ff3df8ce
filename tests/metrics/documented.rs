//! `docs/metrics.md` has one table of all metrics, and what is served is what stands there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::scrape::Scrape;
use crate::driver::{self, Driver, Mode, SIZE, VG, make_group};
use crate::router::{ApiServer, Replica, hasty};

/// Kind and labels of each metric, by name.
pub(super) type Told = BTreeMap<String, (String, BTreeSet<String>)>;

pub(super) fn documented(role: &str) -> Told {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md")).unwrap();
    let (table, _) = text.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `quarry_"));
    let mut told = Told::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, roles, _] = cells.as_slice() else { panic!("{row}") };
        assert!(["node", "controller", "both"].contains(roles), "{row}");
        let labels = labels
            .split(", ")
            .map(|label| label.trim_matches('`').to_owned())
            .filter(|label| !label.is_empty());
        if *roles == role || *roles == "both" {
            told.insert(name.trim_matches('`').to_owned(), ((*kind).to_owned(), labels.collect()));
        }
    }
    told
}

fn served(scrape: &Scrape) -> Told {
    let labels = |name: &str| scrape.labels.get(name).cloned().unwrap_or_default();
    scrape.kinds.iter().map(|(name, kind)| (name.clone(), (kind.clone(), labels(name)))).collect()
}

#[test]
fn what_a_node_serves_is_documented_and_all_of_it_is_served() {
    lab::Machine::new().disk("512M").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let address = "127.0.0.1:9809";
            let driver = Driver::start_with(&["--volume-group", VG, "--health-address", address]).await;
            let mut client = driver.client().await;
            let made = client.create("pvc-a", SIZE, Mode::Block).await.unwrap();
            client.delete(&made.volume_id).await.unwrap();
            let told = documented("node");
            assert!(told.len() > 10, "{told:?}");
            assert_eq!(served(&Scrape::of(address.parse().unwrap()).await), told);
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_controller_serves_is_documented_and_all_of_it_is_served() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    drop(replica.maximum(None).await);
    assert_eq!(served(&Scrape::of(replica.health).await), documented("controller"));
    replica.stop().await;
}
