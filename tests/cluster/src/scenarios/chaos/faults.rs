//! What strikes: the driver's parts, kubelets and whole nodes, in an order that the dice draw.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use lab::Dice;
use tokio::sync::watch;
use tokio::time::sleep;

use super::slot::line;
use super::{PATIENCE, is_stopped_within};
use crate::scenarios::volumes::{ensure, node_of};
use crate::{Cluster, Error, Node, Service, driver, say, wait};

/// Between two faults, in milliseconds.
const PAUSE: Range<u64> = 15_000..45_000;
/// For how long what is ended by hand stays so, in milliseconds.
const DOWN: Range<u64> = 0..10_000;
/// How often each kind strikes at least.
const TIMES: u64 = 2;

/// What is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The driver's pod on a node.
    Driver,
    Controller,
    /// csi-provisioner or csi-resizer.
    Sidecar,
    Kubelet,
    /// A node loses its power.
    Node,
}

const FAULTS: [Fault; 5] = [Fault::Driver, Fault::Controller, Fault::Sidecar, Fault::Kubelet, Fault::Node];

/// How a part ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Its processes are killed.
    Killed,
    /// It is asked to end.
    Asked,
    /// It is asked to end, and killed a second later.
    Hurried,
}

/// Faults under way, and what has struck so far.
pub(super) struct Storm<'a> {
    cluster: &'a Cluster,
    dice: Dice,
    begun: Instant,
    /// The faults that have to strike before one of them strikes once more.
    deck: Vec<Fault>,
    counts: BTreeMap<Fault, u64>,
    told: Vec<String>,
}

impl<'a> Storm<'a> {
    pub(super) fn new(cluster: &'a Cluster, seed: u64, begun: Instant) -> Storm<'a> {
        let (dice, counts) = (Dice::new(seed, 0), BTreeMap::new());
        Storm { cluster, dice, begun, deck: Vec::new(), counts, told: Vec::new() }
    }

    /// Lets fault after fault strike for so long, and for longer until each has struck often enough, or until it is
    /// told to stop. Tells the others to stop then.
    pub(super) async fn rage(mut self, length: Duration, stop: &watch::Sender<bool>) -> Result<Self, Error> {
        let mut stopped = stop.subscribe();
        while self.begun.elapsed() < length || !self.has_struck_enough() {
            let pause = self.dice.time(PAUSE);
            if is_stopped_within(&mut stopped, pause).await {
                break;
            }
            let fault = self.draw();
            self.strike(fault).await.map_err(|error| self.explain(&error))?;
            *self.counts.entry(fault).or_default() += 1;
        }
        self.tell("no more faults".to_owned());
        stop.send_replace(true);
        Ok(self)
    }

    fn has_struck_enough(&self) -> bool {
        FAULTS.iter().all(|fault| self.counts.get(fault).is_some_and(|count| *count >= TIMES))
    }

    fn draw(&mut self) -> Fault {
        if self.deck.is_empty() {
            self.deck = FAULTS.to_vec();
        }
        self.dice.take(&mut self.deck)
    }

    /// Returns when it has struck; after a power cut when all nodes are ready again.
    async fn strike(&mut self, fault: Fault) -> Result<(), Error> {
        let nodes: Vec<&Arc<Node>> = self.cluster.nodes().iter().collect();
        let node = self.dice.pick(&nodes);
        let way = self.dice.pick(&[Way::Killed, Way::Killed, Way::Asked, Way::Hurried]);
        let down = self.dice.time(DOWN);
        match fault {
            Fault::Driver => {
                self.tell(format!("the driver on {}: {way:?}", node.name()));
                self.patiently(fault, || self.end_pod("node", Some(node.name()), way)).await
            }
            Fault::Controller => {
                self.tell(format!("the controller: {way:?}"));
                self.patiently(fault, || self.end_pod("controller", None, way)).await
            }
            Fault::Sidecar => {
                let name = self.dice.pick(&["csi-provisioner", "csi-resizer"]);
                self.tell(format!("{name}: killed"));
                self.patiently(fault, || self.kill_sidecar(name)).await
            }
            Fault::Kubelet => {
                self.tell(format!("the kubelet of {}: {way:?}, for {down:?}", node.name()));
                self.patiently(fault, || end_kubelet(node, way)).await?;
                sleep(down).await;
                self.patiently(fault, || node.start_service(Service::Kubelet)).await
            }
            Fault::Node => {
                self.tell(format!("{}: without power for {down:?}", node.name()));
                node.cut_power().await?;
                sleep(down).await;
                self.patiently(fault, || node.start()).await?;
                nodes_ready(self.cluster).await
            }
        }
    }

    /// Tries until it strikes: the part may be just about to start after the last fault.
    async fn patiently<F>(&self, fault: Fault, one: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        wait::try_until(&format!("the fault {fault:?} to be done"), PATIENCE, one).await
    }

    /// Ends one of the driver's pods.
    async fn end_pod(&self, part: &str, node: Option<&str>, way: Way) -> Result<(), Error> {
        let is_it = |pod: &Pod| {
            let on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_none_or(|node| on == Some(node))
        };
        let found = self.cluster.driver_pods(part).await?.into_iter().find(is_it);
        let pod = found.ok_or_else(|| Error::other(format!("there is no pod of the {part}")))?;
        let params = match way {
            Way::Killed => {
                return kill(node_of(self.cluster, &pod)?, &format!("^/usr/bin/quarry {part}")).await;
            }
            Way::Asked => DeleteParams::default(),
            Way::Hurried => DeleteParams::default().grace_period(1),
        };
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), driver::NAMESPACE);
        let name = pod.name_any();
        pods.delete(&name, &params).await.map(drop).map_err(Error::api(format!("delete the pod {name}")))
    }

    async fn kill_sidecar(&self, name: &str) -> Result<(), Error> {
        let pod = self.cluster.controller().await?;
        kill(node_of(self.cluster, &pod)?, &format!("^/{name}")).await
    }

    fn tell(&mut self, what: String) {
        let line = line(self.begun.elapsed(), &what);
        say(&format!("chaos: {line}"));
        self.told.push(line);
    }

    /// The error with all that struck before it.
    pub(super) fn explain(&self, error: &Error) -> Error {
        Error::Other(format!("{}\nthe faults:\n{}", error.chain(), self.told.join("\n")))
    }

    /// How often each kind has struck.
    pub(super) fn summary(&self) -> String {
        let counts = self.counts.iter().map(|(fault, count)| format!("{fault:?} {count}"));
        format!("faults: {}", counts.collect::<Vec<_>>().join(", "))
    }
}

/// Waits until all nodes are ready, also one that is just being started again because its guest hung.
pub(super) async fn nodes_ready(cluster: &Cluster) -> Result<(), Error> {
    for node in cluster.nodes() {
        let look = || cluster.node_ready(node.name(), PATIENCE);
        wait::try_until(&format!("{} to be ready again", node.name()), PATIENCE, look).await?;
    }
    Ok(())
}

async fn end_kubelet(node: &Node, way: Way) -> Result<(), Error> {
    match way {
        Way::Killed => node.kill_service(Service::Kubelet).await,
        Way::Asked | Way::Hurried => node.stop_service(Service::Kubelet).await,
    }
}

/// Kills all processes of a node whose command line fits; there has to be one.
async fn kill(node: &Node, pattern: &str) -> Result<(), Error> {
    let output = node.run(&["pkill", "-KILL", "-f", pattern]).await?;
    ensure(output.status == 0, || format!("no process of {} fits {pattern}: {output:?}", node.name()))
}
