//! The cluster's control plane: ordinary processes of this machine, in the cluster's network.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
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
    daemons: Vec<Daemon>,
}

impl ControlPlane {
    /// Starts it, and returns when the API server is ready for requests.
    pub(crate) async fn start(paths: &Paths, authority: &Authority) -> Result<(ControlPlane, Client), Error> {
        let start = Start { paths, authority };
        let mut control_plane = ControlPlane { daemons: vec![start.etcd()?, start.api_server()?] };
        let client = client(paths).await?;
        control_plane.wait_for_api(&client).await?;
        control_plane.daemons.extend([start.controllers()?, start.scheduler()?, start.dns()?]);
        Ok((control_plane, client))
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

/// What starting a program needs.
struct Start<'a> {
    paths: &'a Paths,
    authority: &'a Authority,
}

impl Start<'_> {
    fn daemon(&self, name: &str, arguments: Vec<String>) -> Result<Daemon, Error> {
        let log = self.paths.logs().join(format!("{name}.log"));
        let mut command = command(self.paths.bin().join(name));
        Daemon::start(command.args(arguments).current_dir(self.paths.run()), log)
    }

    fn etcd(&self) -> Result<Daemon, Error> {
        let arguments = vec![
            flag("data-dir", self.paths.run().join("etcd").display()),
            flag("listen-client-urls", ETCD),
            flag("advertise-client-urls", ETCD),
            flag("listen-peer-urls", "http://127.0.0.1:2380"),
            // Nobody's data: it is gone when the cluster is down.
            "--unsafe-no-fsync".to_owned(),
        ];
        self.daemon("etcd", arguments)
    }

    fn api_server(&self) -> Result<Daemon, Error> {
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
        self.daemon("kube-apiserver", arguments)
    }

    fn controllers(&self) -> Result<Daemon, Error> {
        let name = "kube-controller-manager";
        let accounts = self.paths.run().join("service-accounts.key");
        let arguments = vec![
            flag("kubeconfig", self.kubeconfig(name)?.display()),
            flag("root-ca-file", self.authority.certificate().display()),
            flag("service-account-private-key-file", accounts.display()),
            flag("use-service-account-credentials", true),
            flag("leader-elect", false),
        ];
        self.daemon(name, arguments)
    }

    fn scheduler(&self) -> Result<Daemon, Error> {
        let name = "kube-scheduler";
        let arguments =
            vec![flag("kubeconfig", self.kubeconfig(name)?.display()), flag("leader-elect", false)];
        self.daemon(name, arguments)
    }

    /// The names of services, for pods. It reads the API as an administrator does.
    fn dns(&self) -> Result<Daemon, Error> {
        let config = format!(
            ".:53 {{\n  bind {GATEWAY}\n  errors\n  ready 127.0.0.1:8181\n  \
             kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {} lab\n  }}\n}}\n",
            self.paths.kubeconfig().display()
        );
        let file = self.paths.run().join("Corefile");
        paths::write(&file, config)?;
        self.daemon("coredns", vec!["-conf".into(), file.display().to_string()])
    }

    fn kubeconfig(&self, program: &str) -> Result<PathBuf, Error> {
        self.authority.kubeconfig(program, &format!("system:{program}"), None)
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
