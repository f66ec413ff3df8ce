//! Many who come at once, and few who speak.

use std::time::{Duration, Instant};

use quarry::link::Tuning;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::controller::Controller;
use super::node::{Node, mounts};
use super::raw::Raw;
use super::{brisk, soon};

#[tokio::test]
async fn those_who_say_nothing_keep_nobody_out() {
    let tuning = Tuning { silent: 8, hello: Duration::from_secs(20), ..Tuning::default() };
    let hello = tuning.hello;
    let mut controller = Controller::start(tuning).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(controller.address).await.unwrap());
    }
    // These speak TLS and then nothing.
    for _ in 0..4 {
        silent.push(
            Raw::connect(controller.address, controller.authority.pem()).await.unwrap().stream.into_inner().0,
        );
    }
    let started = Instant::now();
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, brisk());
    controller.session().await;
    assert!(started.elapsed() < hello / 2, "{:?}", started.elapsed());
    // All but the last few have lost their places.
    for stream in &mut silent[..90] {
        let end = soon("the end of a silent connection", stream.read(&mut [0; 8])).await;
        assert!(!matches!(end, Ok(1..)));
    }
}

#[tokio::test]
async fn a_hello_has_its_time() {
    let tuning = Tuning { hello: Duration::from_millis(200), ..Tuning::default() };
    let controller = Controller::start(tuning).await;
    let mut silent = TcpStream::connect(controller.address).await.unwrap();
    assert_eq!(soon("the end", silent.read(&mut [0; 8])).await.unwrap(), 0);
    let mut half = Raw::connect(controller.address, controller.authority.pem()).await.unwrap();
    half.send(&[0, 0, 0, 9, 8]).await.unwrap();
    assert!(!matches!(soon("the end", half.stream.read(&mut [0; 8])).await, Ok(1..)));
}

#[tokio::test]
async fn a_node_gives_up_on_a_controller_that_says_nothing() {
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tuning = Tuning { hello: Duration::from_millis(200), ..brisk() };
    let dir = mounts("token-n1", Some(super::authority::Authority::new().pem()));
    let _node = Node::start(deaf.local_addr().unwrap(), dir, tuning);
    let (_first, _) = soon("a connection", deaf.accept()).await.unwrap();
    soon("another connection", deaf.accept()).await.unwrap();
}
