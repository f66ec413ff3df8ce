//! A node, seen from the host: a guest that can lose its power and come back, and in which programs can be run.

mod disks;
mod power;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lab::Machine;

use crate::agent::{Action, Answer, Output, Request, Service, ask};
use crate::credentials::Authority;
use crate::guest::{Credentials, NAMESPACE, Order};
use crate::options::NodeOptions;
use crate::paths::{self, Paths};
use crate::{Error, images, network};

pub(crate) use watch::watch;

/// How long a program on a node may take unless the caller says otherwise: most are done at once.
const RUN_LIMIT: Duration = Duration::from_secs(120);
/// Stopping a service takes a while when it does not want to end.
const SERVICE_LIMIT: Duration = Duration::from_secs(120);
const IMPORT_LIMIT: Duration = Duration::from_secs(300);

/// A node of the cluster. Dropping it cuts its power.
#[derive(Debug)]
pub struct Node {
    order: Order,
    /// The file that the order is in, for the guest.
    order_file: PathBuf,
    /// The program that the guest runs: this one.
    program: PathBuf,
    machine: Arc<Machine>,
    power: power::Power,
}

impl Node {
    /// Describes the node of this number (counted from 1) of so many, and makes its files. It has no power yet.
    pub(crate) async fn create(
        paths: &Paths,
        authority: &Authority,
        disk: &Path,
        options: &NodeOptions,
        (number, of): (u8, u8),
    ) -> Result<Node, Error> {
        let order = order(paths, authority, options, (number, of))?;
        paths::make_folder(&order.folder)?;
        let order_file = paths.run().join(format!("{}.json", order.name));
        order.save(&order_file)?;
        let own_disk = paths.run().join(format!("{}.img", order.name));
        images::copy_disk(disk, &own_disk).await?;
        Ok(Node {
            machine: Arc::new(machine(options, number, &own_disk, &order.folder)),
            order,
            order_file,
            program: paths.program().to_owned(),
            power: power::Power::default(),
        })
    }

    /// Its name in Kubernetes.
    pub fn name(&self) -> &str {
        &self.order.name
    }

    /// Runs a program on the node, as root and beside the kubelet, to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be run, or does not end within two minutes; not when it fails.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output, Error> {
        self.run_with(arguments, "", RUN_LIMIT).await
    }

    /// Like [`Node::run`], for a program that reads `input`, with a limit of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Node::run`].
    pub async fn run_with(&self, arguments: &[&str], input: &str, limit: Duration) -> Result<Output, Error> {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        match self.ask(&Request::Run { arguments, input: input.to_owned(), limit }, limit).await? {
            Answer::Ran(output) => Ok(output),
            other => Err(Error::other(format!("{}: an unfit answer: {other:?}", self.name()))),
        }
    }

    /// Like [`Node::run`], and fails when the program does. Returns its standard output.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] when the program failed.
    pub async fn run_ok(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = self.run(arguments).await?;
        self.judge(arguments, output)
    }

    /// What the kernel calls this start of the node.
    pub(crate) async fn boot_id(&self) -> Result<String, Error> {
        Ok(self.run_ok(&["cat", "/proc/sys/kernel/random/boot_id"]).await?.trim().to_owned())
    }

    fn judge(&self, arguments: &[&str], output: Output) -> Result<String, Error> {
        if output.status == 0 {
            return Ok(output.stdout);
        }
        Err(Error::Failed {
            program: format!("{} on {}", arguments.join(" "), self.name()),
            end: format!("exit status {}", output.status),
            output: output.stdout + &output.stderr,
        })
    }

    /// Starts a service, which is started again whenever it ends unasked. One that runs is left alone.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn start_service(&self, service: Service) -> Result<(), Error> {
        self.change(service, Action::Start).await
    }

    /// Ends a service as systemd would: asks it first. It stays down until it is started.
    ///
    /// # Errors
    ///
    /// When the node does not answer.
    pub async fn stop_service(&self, service: Service) -> Result<(), Error> {
        self.change(service, Action::Stop).await
    }

    /// Kills a service, which has no time to do anything. It stays down until it is started.
    ///
    /// # Errors
    ///
    /// When the node does not answer.
    pub async fn kill_service(&self, service: Service) -> Result<(), Error> {
        self.change(service, Action::Kill).await
    }

    /// Kills a service and starts it again.
    ///
    /// # Errors
    ///
    /// When the node does not answer, or the service does not start.
    pub async fn restart_service(&self, service: Service) -> Result<(), Error> {
        self.kill_service(service).await?;
        self.start_service(service).await
    }

    async fn change(&self, service: Service, action: Action) -> Result<(), Error> {
        match self.ask(&Request::Service { service, action }, SERVICE_LIMIT).await? {
            Answer::Done => Ok(()),
            other => Err(Error::other(format!("{}: an unfit answer: {other:?}", self.name()))),
        }
    }

    async fn ask(&self, request: &Request, limit: Duration) -> Result<Answer, Error> {
        match ask(self.order.address, request, limit).await? {
            Answer::Failed(why) => Err(Error::other(format!("{}: {why}", self.name()))),
            answer => Ok(answer),
        }
    }

    /// Gives the node the images of an OCI archive, which must have a name of its own among all that it is given.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read, by this machine or by containerd.
    pub async fn import(&self, archive: &Path) -> Result<(), Error> {
        let name = archive.file_name().ok_or_else(|| Error::other("an archive without a name"))?;
        // In the folder that the node shares: what else of the host it sees is as old as its first look.
        let copy = self.order.folder.join(name);
        paths::remove(&copy)?;
        std::fs::hard_link(archive, &copy)
            .or_else(|_| std::fs::copy(archive, &copy).map(drop))
            .map_err(Error::at("copy", archive))?;
        let (ctr, file) = (self.order.bin.join("ctr"), copy.to_string_lossy());
        let arguments = [&*ctr.to_string_lossy(), "--namespace", NAMESPACE, "images", "import", &*file];
        let output = self.run_with(&arguments, "", IMPORT_LIMIT).await?;
        paths::remove(&copy)?;
        self.judge(&arguments, output).map(drop)
    }
}

/// All that the node will have to know.
fn order(
    paths: &Paths,
    authority: &Authority,
    options: &NodeOptions,
    (number, of): (u8, u8),
) -> Result<Order, Error> {
    let name = format!("node{number}");
    let address = network::node_address(number);
    let user = format!("system:node:{name}");
    let server = authority.server(&name, &[&name], &[address])?;
    let others = (1..=of).filter(|other| *other != number);
    Ok(Order {
        credentials: Credentials {
            authority: authority.certificate(),
            certificate: server.certificate,
            key: server.key,
            kubelet: authority.kubeconfig(&format!("{name}-kubelet"), &user, Some("system:nodes"))?,
            kube_proxy: authority.kubeconfig(&format!("{name}-kube-proxy"), "system:kube-proxy", None)?,
        },
        address,
        gateway: network::GATEWAY,
        pod_subnet: network::pod_subnet(number),
        cluster_subnet: network::PODS.to_owned(),
        routes: others.map(|other| (network::pod_subnet(other), network::node_address(other))).collect(),
        groups: options.disks.iter().map(|disk| disk.group.clone()).collect(),
        bin: paths.bin(),
        folder: paths.logs().join(&name),
        name,
    })
}

fn machine(options: &NodeOptions, number: u8, own_disk: &Path, folder: &Path) -> Machine {
    let machine = Machine::new()
        .memory(&options.memory)
        .limit(power::LIFE)
        .udev()
        .uncounted()
        .network(&network::tap(number), network::hardware_address(number))
        .share(folder)
        .disk_file(own_disk);
    options.disks.iter().fold(machine, |machine, disk| machine.disk(&disk.size))
}
