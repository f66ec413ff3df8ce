//! The programs that can build an image from a Dockerfile.

use std::fmt;
use std::fs;
use std::process::Command;

use clap::ValueEnum;

use super::arch::Arch;
use super::{Plan, base};
use crate::error::Error;
use crate::program::{self, command, succeed, works};

/// A program that builds images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Builder {
    /// Docker with BuildKit; fetches the base image.
    Docker,
    /// Podman; fetches the base image.
    Podman,
    /// Buildah; makes the base image of Debian's packages where mmdebstrap is there, else fetches it.
    Buildah,
}

impl Builder {
    /// What can build here.
    ///
    /// # Errors
    /// Nothing can.
    pub(crate) fn find() -> Result<Self, Error> {
        let trials: [(Self, &[&str]); 3] =
            [(Self::Docker, &["info"]), (Self::Podman, &["info"]), (Self::Buildah, &["--version"])];
        let found = trials.into_iter().find(|(builder, trial)| works(command(builder.name()).args(*trial)));
        let missing =
            || Error::Other("docker, podman or buildah is needed: apt-get install buildah".to_owned());
        found.map(|(builder, _)| builder).ok_or_else(missing)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Buildah => "buildah",
        }
    }

    /// The command, with what keeps its files apart from other work on this machine.
    pub(super) fn command(self, plan: &Plan) -> Command {
        let mut builder = command(self.name());
        if self == Self::Buildah {
            // Copying files needs no kernel that can stack file systems.
            builder.args(["--storage-driver", "vfs", "--root"]).arg(plan.home.join("store"));
            builder.arg("--runroot").arg(plan.home.join("run"));
        }
        builder
    }

    /// Builds the image under its name.
    ///
    /// # Errors
    /// The builder's own.
    pub(super) fn build(self, plan: &Plan) -> Result<(), Error> {
        let mut build = self.command(plan);
        build.args(["build", "--tag", &plan.name, "--platform", &format!("linux/{}", plan.arch)]);
        build.args(["--build-arg", &format!("BINARY={}", plan.binary)]);
        if self == Self::Buildah {
            // Without user namespaces of its own it works inside other containers too.
            build.args(["--isolation", "chroot", "--layers", "--timestamp", "0"]);
            // Older versions do not know what they run on.
            build.arg("--build-arg").arg(format!("BUILDPLATFORM=linux/{}", Arch::host()?));
            if base::can_be_made() {
                base::make(plan)?;
                build.arg("--pull-never");
            }
        }
        succeed(build.arg(&plan.root))?;
        if self == Self::Buildah {
            // What earlier builds have left is of no use to later ones.
            succeed(self.command(plan).args(["rmi", "--prune"]))?;
        }
        Ok(())
    }

    /// Writes the image into one file, which is whole whenever it is there.
    ///
    /// # Errors
    /// The builder's own, or the file cannot be written.
    pub(super) fn export(self, plan: &Plan) -> Result<(), Error> {
        let unfinished = plan.archive.with_extension("unfinished");
        program::remove(&unfinished)?;
        let mut export = self.command(plan);
        match self {
            Self::Docker => export.args(["save", "--output"]).arg(&unfinished).arg(&plan.name),
            Self::Podman => {
                export.args(["save", "--format", "oci-archive", "--output"]).arg(&unfinished).arg(&plan.name)
            }
            Self::Buildah => export.args(["push", "--quiet", &plan.name]).arg(format!(
                "oci-archive:{}:{}",
                unfinished.display(),
                plan.name
            )),
        };
        succeed(&mut export)?;
        fs::rename(&unfinished, &plan.archive).map_err(Error::at("write", &plan.archive))
    }
}

impl fmt::Display for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
