//! Whether the image works: the driver must start in it, and every program must find all its libraries.

use std::fs;

use super::Plan;
use super::builder::Builder;
use crate::error::Error;
use crate::program::succeed;

/// Tries the image that was just built.
///
/// # Errors
/// A program does not start in it, or is missing.
pub(super) fn run(plan: &Plan) -> Result<(), Error> {
    let trial = Trial::start(plan)?;
    let version = trial.output("/usr/bin/quarry", &["--version"])?;
    if version != format!("quarry {}", env!("CARGO_PKG_VERSION")) {
        return Err(Error::Other(format!("the driver in the image calls itself {version}")));
    }
    for program in programs(plan)? {
        trial.output(plan.arch.loader(), &["--list", &format!("/usr/sbin/{program}")])?;
    }
    trial.end()
}

/// The programs that the Dockerfile asks for: the words after the two hyphens.
fn programs(plan: &Plan) -> Result<Vec<String>, Error> {
    let path = plan.root.join("Dockerfile");
    let text = fs::read_to_string(&path).map_err(Error::at("read", &path))?;
    let list = text.lines().find_map(|line| line.trim().strip_prefix("-- "));
    let list = list.ok_or_else(|| Error::Other("the Dockerfile names no programs".to_owned()))?;
    Ok(list.split_whitespace().map(str::to_owned).collect())
}

struct Trial<'a> {
    plan: &'a Plan,
    /// Where programs are run: in buildah a container, elsewhere the image itself.
    place: String,
}

impl<'a> Trial<'a> {
    fn start(plan: &'a Plan) -> Result<Self, Error> {
        let place = match plan.builder {
            Builder::Buildah => {
                succeed(plan.builder.command(plan).args(["from", "--pull-never", &plan.name]))?
            }
            Builder::Docker | Builder::Podman => plan.name.clone(),
        };
        Ok(Self { plan, place })
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Result<String, Error> {
        let mut run = self.plan.builder.command(self.plan);
        match self.plan.builder {
            Builder::Buildah => run.args(["run", "--isolation", "chroot", &self.place, "--", program]),
            Builder::Docker | Builder::Podman => {
                run.args(["run", "--rm", "--entrypoint", program, &self.place])
            }
        };
        succeed(run.args(arguments))
    }

    fn end(self) -> Result<(), Error> {
        if self.plan.builder == Builder::Buildah {
            succeed(self.plan.builder.command(self.plan).args(["rm", &self.place]))?;
        }
        Ok(())
    }
}
