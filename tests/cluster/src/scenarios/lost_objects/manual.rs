//! The very commands that a person finds in the documentation.

use crate::driver::documented;
use crate::{Cluster, Error, Paths};

const PAGE: &str = "docs/looking.md";

/// The steps, by the beginnings of their lines.
pub(super) const WRITE_DOWN: &str = "**2. Write down";
pub(super) const SEE: &str = "**3. See that nothing is there twice";
pub(super) const APPLY: &str = "**4. Make";
pub(super) const LET_GO: &str = "**6. Let volumes go";

/// Runs a step's commands as a person does who has the cluster's kubeconfig, and returns what they printed.
pub(super) async fn run(cluster: &Cluster, step: &str) -> Result<String, Error> {
    let paths = Paths::find()?;
    // What they write is gone when the cluster is down.
    let lines = format!("cd '{}'\n{}", paths.run().display(), documented(PAGE, step)?);
    cluster.shell(&paths, &lines).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_commands_for_each_step() {
        for (step, command) in [
            (WRITE_DOWN, "quarry volumes --manifests"),
            (SEE, "uniq -d"),
            (APPLY, "kubectl apply -f volumes.yaml"),
            (LET_GO, "kubectl patch"),
        ] {
            let commands = documented(PAGE, step).unwrap();
            assert!(commands.contains(command), "{step}: {commands}");
        }
    }
}
