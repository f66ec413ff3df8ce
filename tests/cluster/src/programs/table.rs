//! Which programs there are, and which versions they say they are.

use std::path::Path;

use crate::{Error, paths};

/// Flags of every build. The first one keeps the pinned versions.
pub(super) const FLAGS: [&str; 3] = ["-mod=readonly", "-trimpath", "-buildvcs=false"];

/// A program, its Go package, and the variable that holds its version, if it is none of Kubernetes' own.
const PROGRAMS: [(&str, &str, Option<&str>); 20] = [
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", None),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", None),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", None),
    ("kubelet", "k8s.io/kubernetes/cmd/kubelet", None),
    ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", None),
    ("kubectl", "./kubectl", None),
    ("etcd", "go.etcd.io/etcd/server/v3", None),
    ("coredns", "./coredns", None),
    ("containerd", "github.com/containerd/containerd/v2/cmd/containerd", None),
    ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", None),
    ("ctr", "github.com/containerd/containerd/v2/cmd/ctr", None),
    ("crictl", "sigs.k8s.io/cri-tools/cmd/crictl", Some("sigs.k8s.io/cri-tools/pkg/version.Version")),
    ("cni/ptp", "github.com/containernetworking/plugins/plugins/main/ptp", None),
    ("cni/loopback", "github.com/containernetworking/plugins/plugins/main/loopback", None),
    ("cni/host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local", None),
    (
        "csi-provisioner",
        "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
        Some("main.version"),
    ),
    ("csi-resizer", "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer", Some("main.version")),
    ("csi-node-driver-registrar", "./registrar", None),
    ("agnhost", "k8s.io/kubernetes/test/images/agnhost", None),
    ("helm", "helm.sh/helm/v4/cmd/helm", None),
];

/// Kubernetes' own tests, and their Go package.
pub(super) const SUITE: (&str, &str) = ("e2e.test", "k8s.io/kubernetes/test/e2e");

/// One program, ready to be built.
#[derive(Debug)]
pub(super) struct Program {
    /// Its name in the folder of programs.
    pub(super) name: &'static str,
    /// Its Go package; those with a dot in front are ours.
    pub(super) package: &'static str,
    /// How Go is told to build it.
    pub(super) verb: &'static [&'static str],
    /// No debug information, and its version.
    pub(super) link_flags: String,
}

/// All programs.
pub(super) fn programs(versions: &Versions) -> Vec<Program> {
    let kubernetes = versions.kubernetes_flags();
    PROGRAMS
        .iter()
        .map(|&(name, package, variable)| {
            let own = variable.zip(versions.of_package(package));
            let own = own.map_or(String::new(), |(variable, version)| format!(" -X {variable}={version}"));
            let link_flags = format!("-s -w{kubernetes}{own}");
            Program { name, package, verb: &["build"], link_flags }
        })
        .collect()
}

/// Kubernetes' own tests, which no cluster needs.
pub(super) fn suite(versions: &Versions) -> Program {
    let (name, package) = SUITE;
    let link_flags = format!("-s -w{}", versions.kubernetes_flags());
    Program { name, package, verb: &["test", "-c"], link_flags }
}

/// The versions that the Go module pins.
#[derive(Debug, Clone)]
pub(crate) struct Versions(Vec<(String, String)>);

impl Versions {
    /// Those of the module that all programs are built from.
    pub(crate) fn of_module() -> Result<Versions, Error> {
        Versions::read(Path::new(paths::GO_MODULE))
    }

    /// Reads them from the module's `go.mod`.
    pub(super) fn read(module: &Path) -> Result<Versions, Error> {
        Ok(Versions::parse(&paths::read(&module.join("go.mod"))?))
    }

    fn parse(text: &str) -> Versions {
        let pair = |line: &str| {
            let mut words = line.trim_start().trim_start_matches("require ").split_whitespace();
            let (module, version) = (words.next()?, words.next()?);
            version.starts_with('v').then(|| (module.to_owned(), version.to_owned()))
        };
        Versions(text.lines().filter_map(pair).collect())
    }

    /// The version of the module that a package belongs to, with its `v`.
    pub(crate) fn of_package(&self, package: &str) -> Option<&str> {
        let belongs = |module: &str| {
            package.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.0.iter().find(|(module, _)| belongs(module)).map(|(_, version)| version.as_str())
    }

    /// Like [`Versions::of_package`], for a module that has to be there.
    pub(crate) fn of(&self, module: &str) -> Result<&str, Error> {
        self.of_package(module).ok_or_else(|| Error::other(format!("the Go module does not pin {module}")))
    }

    /// What Kubernetes' own build says: its programs judge each other by it.
    fn kubernetes_flags(&self) -> String {
        let version = self.of_package("k8s.io/kubernetes").unwrap_or_default();
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        [("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)]
            .map(|(name, value)| format!(" -X k8s.io/component-base/version.{name}={value}"))
            .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "module a\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n\
                          \tgithub.com/b/c/v6 v6.4.0 // indirect\n)\nrequire d.io/e v0.1.0\n";

    #[test]
    fn versions_are_those_of_the_module_that_a_package_is_in() {
        let versions = Versions::parse(MODULE);
        assert_eq!(versions.of_package("github.com/b/c/v6/cmd/c"), Some("v6.4.0"));
        assert_eq!(versions.of_package("github.com/b/c/v66"), None);
        assert_eq!(versions.of_package("d.io/e"), Some("v0.1.0"));
    }

    #[test]
    fn kubernetes_is_told_its_version() {
        let flags = Versions::parse(MODULE).kubernetes_flags();
        assert_eq!(
            flags,
            " -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=37"
        );
    }

    #[test]
    fn every_program_that_is_not_ours_is_pinned() {
        let versions = Versions::read(Path::new(paths::GO_MODULE)).unwrap();
        for (name, package, _) in PROGRAMS {
            assert!(package.starts_with("./") || versions.of_package(package).is_some(), "{name}");
        }
    }
}
