//! How long a call over a link takes: `cargo test --release --test integration -- --ignored --nocapture link_overhead`.

use std::time::Instant;

use quarry::link::Tuning;
use quarry::proto::csi::v1::controller_client::ControllerClient;

use super::controller::Controller;
use super::node::{Node, mounts};
use super::stub::create;

const CALLS: usize = 5000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, not a test"]
async fn link_overhead() {
    let mut controller = Controller::start(Tuning::default()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, Tuning::default());
    let mut client = ControllerClient::new(controller.session().await.channel());
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        client.create_volume(create("pvc-1")).await.unwrap();
        times.push(started.elapsed());
    }
    times.sort();
    println!(
        "{CALLS} calls one after another: median {:?}, 99 % within {:?}, all within {:?}",
        times[CALLS / 2],
        times[CALLS * 99 / 100],
        times[CALLS - 1]
    );
}
