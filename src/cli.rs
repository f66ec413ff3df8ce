//! The command line: what can be typed, and what is printed when it is wrong.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::{ControllerFlags, Flags, LookFlags, LostFlags, NodeFlags, VolumesFlags};
use crate::types::chain;

/// The exit code of a command that was typed wrongly (sysexits.h, `EX_USAGE`).
pub const USAGE: u8 = 64;

/// The exit code where something is unhealthy.
pub const UNHEALTHY: u8 = 2;

/// A CSI driver that cuts LVM logical volumes into local persistent volumes.
///
/// Quarry makes a logical volume for every claim, puts a file system on it or hands it out as a block
/// device, grows it in place, and removes it with the claim.
#[derive(Debug, Parser)]
#[command(name = "quarry", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed (the reason is on standard error), 2 something is unhealthy (quarry check), 64 typed wrongly."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be asked of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves all of CSI on one unix socket, without Kubernetes.
    ///
    /// For csi-sanity, for other orchestrators, and for trying Quarry out. Needs root and LVM. Volumes
    /// are made in the volume groups that are named, and nothing else on the machine is touched. Stop it
    /// with SIGTERM or Ctrl-C: it finishes what it began.
    #[command(after_help = "Example, with a volume group vg0 of which 10 GiB stay free for expansions:\n  \
                            quarry standalone --volume-group vg0=10GiB --endpoint unix:///run/quarry/csi.sock")]
    Standalone(Box<Flags>),
    /// Serves the volumes of one Kubernetes node.
    ///
    /// The kubelet calls it on the unix socket. It dials the controllers, which then call it over the
    /// same connection, so it needs no port of its own and no permission of the API server. Needs root and
    /// LVM. Stop it with SIGTERM: it finishes what it began.
    #[command(
        after_help = "Example:\n  quarry node --volume-group vg0 --node-name node-1 \\\n    --controller quarry-controller.quarry-system.svc:9443"
    )]
    Node(Box<NodeFlags>),
    /// Serves Kubernetes' sidecars, and passes their calls on to the nodes.
    ///
    /// The nodes dial it and prove by their service account's token who they are. It keeps nothing but what
    /// it has from them; several replicas may run. It finds the API server by its own service account, or by
    /// the file that KUBECONFIG names.
    #[command(after_help = "Example, outside of a cluster:\n  \
                            KUBECONFIG=admin.conf quarry controller --namespace quarry-system --pod-name me")]
    Controller(Box<ControllerFlags>),
    /// Prints the volumes of this machine.
    ///
    /// Whose they are, how large and how full, what they have been through, and where they are published: to
    /// pods, by their UIDs, or at other paths. It works beside a running driver and without one, asks LVM
    /// without its locks, and changes nothing. Needs root.
    #[command(after_help = "Example, in Kubernetes:\n  \
                            kubectl -n quarry-system exec quarry-node-x7k2p -c quarry -- quarry volumes\n\n\
                            Example, for a cluster that was built anew:\n  \
                            quarry volumes --manifests --storage-class quarry | kubectl apply -f -")]
    Volumes(Box<VolumesFlags>),
    /// Prints the volume groups of this machine.
    ///
    /// Those that the driver uses here, and others that hold volumes of it: their room, and whether they are
    /// healthy. It works beside a running driver and without one, and changes nothing. Needs root.
    #[command(after_help = "Example:\n  quarry vgs --json")]
    Vgs(Box<LookFlags>),
    /// Prints what is unhealthy on this machine, and what to do about it.
    ///
    /// It works beside a running driver and without one, asks LVM without its locks, and changes nothing. It
    /// ends with 0 where nothing is unhealthy, with 2 where something is, and with 1 where that cannot be told.
    /// Needs root.
    #[command(after_help = "Example:\n  quarry check || echo 'look at this machine'")]
    Check(Box<LookFlags>),
    /// Tells which volume groups are missing, and declares one lost.
    ///
    /// While a volume group is missing, its volumes cannot be deleted: its disks may come back. Once it is declared
    /// lost, deleting them succeeds although nothing is deleted. A group that is seen again comes off the list by
    /// itself. It needs an API server, and neither root nor LVM.
    #[command(after_help = "Example, in Kubernetes:\n  \
                            kubectl -n quarry-system exec deploy/quarry-controller -c quarry -- quarry lost\n\n\
                            Example, for disks that will not come back:\n  \
                            quarry lost --declare Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4")]
    Lost(Box<LostFlags>),
    /// Prints the JSON schema of a role's configuration file.
    #[command(after_help = "Example:\n  quarry config-schema > quarry.schema.json")]
    ConfigSchema {
        /// The role.
        #[arg(default_value = "standalone")]
        role: Role,
    },
}

/// A role that has a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Of `quarry standalone` and `quarry node`, which have the same one.
    #[value(alias = "node")]
    Standalone,
    /// Of `quarry controller`.
    Controller,
}

impl Cli {
    /// Reads a command line.
    ///
    /// # Errors
    /// What to print, and the exit code, where the line asks for help or is wrong.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, Answer> {
        Self::try_parse_from(line).map_err(Answer)
    }
}

/// An answer to a command line that leads to no work: a help text, the version, or what is wrong.
#[derive(Debug)]
pub struct Answer(clap::Error);

impl Answer {
    /// Prints it where it belongs. The exit code is zero for what was asked for, else [`USAGE`].
    pub fn print(&self) -> ExitCode {
        // There is nowhere to complain to when standard error is closed.
        let _ = self.0.print();
        if self.0.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
    }
}

/// Prints an error, and what led to it, as one line on standard error.
pub fn print_error(error: &dyn Error) {
    // Written at once, so that nobody else's line comes in between. There is nowhere to complain to when
    // standard error is closed.
    let line = format!("quarry: {}\n", chain(error));
    let _ = io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests;
