//! The cluster's control plane: ordinary processes of this machine, in the cluster's network.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use nix::sys::signal::Signal;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::audit::Audit;
use crate::credentials::{API_PORT, Authority};
use crate::network::{API_SERVICE, GATEWAY, SERVICES};
use crate::paths::{self, Paths};
use crate::program::{Daemon, command};
use crate::{Error, wait};

const READY_LIMIT: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(100);
const ETCD: &str = "http://127.0.0.1:2379";

/// The names of the API server, as its clients know it.
const API_NAMES: [&str; 4] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// All of it. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// What the others need: etcd, and the API server, which needs that.
    first: [Program; 2],
    others: [Program; 3],
    daemons: Vec<Daemon>,
    /// The folder of all objects.
    objects: PathBuf,
}

impl ControlPlane {
    /// Starts it, and returns when the API server is ready for requests.
    pub(crate) async fn start(paths: &Paths, authority: &Authority) -> Result<(ControlPlane, Client), Error> {
        let start = Start { paths, authority };
        let mut control_plane = ControlPlane {
            first: [start.etcd(), start.api_server()?],
            others: [start.controllers()?, start.scheduler()?, start.dns()?],
            daemons: Vec::new(),
            objects: start.objects(),
        };
        let client = client(paths).await?;
        control_plane.run(&client).await?;
        Ok((control_plane, client))
    }

    /// Ends all of it at once, throws all objects away, and starts it anew with the keys and certificates that it had.
    /// Returns when the API server is ready for requests.
    pub(crate) async fn lose_objects(&mut self, client: &Client) -> Result<(), Error> {
        // The last first: none is left to act on what it remembers of the objects.
        while let Some(daemon) = self.daemons.pop() {
            daemon.end(Signal::SIGKILL).await?;
        }
        paths::remove(&self.objects)?;
        self.run(client).await
    }

    async fn run(&mut self, client: &Client) -> Result<(), Error> {
        for program in &mut self.first {
            self.daemons.push(program.start()?);
        }
        self.wait_for_api(client).await?;
        for program in &mut self.others {
            self.daemons.push(program.start()?);
        }
        Ok(())
    }

    /// Fails when one of its programs has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.daemons.iter_mut().try_for_each(Daemon::check)
    }

    async fn wait_for_api(&mut self, client: &Client) -> Result<(), Error> {
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            let Err(error) = wait::is_ready(client).await else { return Ok(()) };
            self.check()?;
            if Instant::now() > deadline {
                let what = "the API server to be ready".to_owned();
                return Err(Error::Late { what, limit: READY_LIMIT, seen: error.chain() });
            }
            sleep(PAUSE).await;
        }
    }
}

/// A client for the API server, with all rights.
async fn client(paths: &Paths) -> Result<Client, Error> {
    let config = Kubeconfig::read_from(paths.kubeconfig()).map_err(Error::other)?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.map_err(Error::other)?;
    Client::try_from(config).map_err(Error::api("make a client"))
}

/// A program, ready to be started as often as wanted.
#[derive(Debug)]
struct Program {
    command: Command,
    log: PathBuf,
}

impl Program {
    fn start(&mut self) -> Result<Daemon, Error> {
        Daemon::start(&mut self.command, self.log.clone())
    }
}

/// What a program's command needs.
struct Start<'a> {
    paths: &'a Paths,
    authority: &'a Authority,
}

impl Start<'_> {
    fn program(&self, name: &str, arguments: Vec<String>) -> Program {
        let log = self.paths.logs().join(format!("{name}.log"));
        let mut command = command(self.paths.bin().join(name));
        command.args(arguments).current_dir(self.paths.run());
        Program { command, log }
    }

    fn objects(&self) -> PathBuf {
        self.paths.run().join("etcd")
    }

    fn etcd(&self) -> Program {
        let arguments = vec![
            flag("data-dir", self.objects().display()),
            flag("listen-client-urls", ETCD),
            flag("advertise-client-urls", ETCD),
            flag("listen-peer-urls", "http://127.0.0.1:2380"),
            // Nobody's data: it is gone when the cluster is down.
            "--unsafe-no-fsync".to_owned(),
        ];
        self.program("etcd", arguments)
    }

    fn api_server(&self) -> Result<Program, Error> {
        let authority = self.authority;
        let ips = [GATEWAY, API_SERVICE, std::net::Ipv4Addr::LOCALHOST];
        let server = authority.server("kube-apiserver", &API_NAMES, &ips)?;
        let kubelets = authority.client("kubelet-client", "kube-apiserver", Some("system:masters"))?;
        let (accounts_key, accounts_public) = authority.service_accounts()?;
        let mut arguments = vec![
            flag("etcd-servers", ETCD),
            flag("advertise-address", GATEWAY),
            flag("secure-port", API_PORT),
            flag("service-cluster-ip-range", SERVICES),
            flag("client-ca-file", authority.certificate().display()),
            flag("tls-cert-file", server.certificate.display()),
            flag("tls-private-key-file", server.key.display()),
            flag("kubelet-certificate-authority", authority.certificate().display()),
            flag("kubelet-client-certificate", kubelets.certificate.display()),
            flag("kubelet-client-key", kubelets.key.display()),
            flag("kubelet-preferred-address-types", "InternalIP"),
            flag("service-account-issuer", "https://kubernetes.default.svc"),
            flag("service-account-key-file", accounts_public.display()),
            flag("service-account-signing-key-file", accounts_key.display()),
            flag("authorization-mode", "Node,RBAC"),
            flag("allow-privileged", true),
        ];
        arguments.extend(Audit::of(self.paths).flags(self.paths)?);
        Ok(self.program("kube-apiserver", arguments))
    }

    fn controllers(&self) -> Result<Program, Error> {
        let name = "kube-controller-manager";
        let accounts = self.paths.run().join("service-accounts.key");
        let arguments = vec![
            flag("kubeconfig", self.kubeconfig(name)?.display()),
            flag("root-ca-file", self.authority.certificate().display()),
            flag("service-account-private-key-file", accounts.display()),
            flag("use-service-account-credentials", true),
            flag("leader-elect", false),
        ];
        Ok(self.program(name, arguments))
    }

    fn scheduler(&self) -> Result<Program, Error> {
        let name = "kube-scheduler";
        let arguments =
            vec![flag("kubeconfig", self.kubeconfig(name)?.display()), flag("leader-elect", false)];
        Ok(self.program(name, arguments))
    }

    /// The names of services, for pods. It reads the API as an administrator does.
    fn dns(&self) -> Result<Program, Error> {
        let config = format!(
            ".:53 {{\n  bind {GATEWAY}\n  errors\n  ready 127.0.0.1:8181\n  \
             kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {} lab\n  }}\n}}\n",
            self.paths.kubeconfig().display()
        );
        let file = self.paths.run().join("Corefile");
        paths::write(&file, config)?;
        Ok(self.program("coredns", vec!["-conf".into(), file.display().to_string()]))
    }

    fn kubeconfig(&self, program: &str) -> Result<PathBuf, Error> {
        self.authority.kubeconfig(program, &format!("system:{program}"), None)
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
