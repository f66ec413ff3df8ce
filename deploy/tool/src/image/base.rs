//! The base image, made of Debian's packages where no registry is at hand.
//!
//! It serves to fetch packages and is no part of the image, so that it need not be the same as the one that a
//! registry has.

use nix::unistd::Uid;

use super::Plan;
use super::builder::Builder;
use crate::error::Error;
use crate::program::{self, command, succeed, works};
use crate::say;

/// The base image's name in the Dockerfile.
const NAME: &str = "debian:bookworm-slim";
const SUITE: &str = "bookworm";

/// Whether it can be made here.
pub(super) fn can_be_made() -> bool {
    works(command("mmdebstrap").arg("--version"))
}

/// Makes it, unless it is there.
///
/// # Errors
/// The packages cannot be fetched or unpacked.
pub(super) fn make(plan: &Plan) -> Result<(), Error> {
    let buildah = || Builder::Buildah.command(plan);
    if works(buildah().args(["inspect", "--type", "image", NAME])) {
        return Ok(());
    }
    say(&format!("make {NAME} of Debian's packages"));
    let tar = plan.home.join("base.tar");
    let mut mmdebstrap = command("mmdebstrap");
    // The one mode that needs nothing of the machine but root.
    mmdebstrap.args(["--quiet", "--variant=apt"]);
    if Uid::effective().is_root() {
        mmdebstrap.arg("--mode=root");
    }
    for unneeded in ["doc", "man", "locale", "info"] {
        mmdebstrap.arg(format!("--dpkgopt=path-exclude=/usr/share/{unneeded}/*"));
    }
    succeed(mmdebstrap.arg(SUITE).arg(&tar))?;
    let container = succeed(buildah().args(["from", "scratch"]))?;
    succeed(buildah().args(["add", "--quiet", &container]).arg(&tar).arg("/"))?;
    succeed(buildah().args(["commit", "--quiet", "--rm", &container, NAME]))?;
    program::remove(&tar)
}
