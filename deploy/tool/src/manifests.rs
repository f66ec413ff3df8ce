//! The chart, rendered for those who use no Helm.

use std::fs;
use std::path::Path;

use clap::Args;

use crate::error::Error;
use crate::program::{command, succeed};
use crate::{ROOT, helm, say};

const CHART: &str = "deploy/chart";
const MANIFESTS: &str = "deploy/manifests/quarry.yaml";
const NAMESPACE: &str = "quarry-system";
/// The oldest version that the chart is for: what newer ones have on top is left out, since an API server takes
/// no field that it does not know.
const KUBERNETES: &str = "1.33.0";

const HEADER: &str = "\
# Everything that Quarry needs in a cluster, rendered from deploy/chart by `make manifests`: change it there.
#
# Before it is applied: push the image that `make image` builds and put its name in the place of localhost/quarry, and
# name your volume groups in the ConfigMap quarry-config. Then: kubectl apply --server-side -f quarry.yaml
";

/// How to render the chart.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Change nothing: fail where the file is not what the chart gives.
    #[arg(long)]
    check: bool,
}

/// Writes the rendered manifests, or compares them with those that are there.
///
/// # Errors
/// The chart cannot be rendered, or the manifests are out of date.
pub(crate) fn render(options: &Options) -> Result<String, Error> {
    let root = Path::new(ROOT);
    let path = root.join(MANIFESTS);
    let text = format!("{HEADER}{}", plain(&template(root)?));
    let written = fs::read_to_string(&path).unwrap_or_default();
    if text == written {
        return Ok(format!("{MANIFESTS} is up to date"));
    }
    if options.check {
        return Err(Error::Other(format!("{MANIFESTS} is not what {CHART} gives: run `make manifests`")));
    }
    fs::write(&path, text).map_err(Error::at("write", &path))?;
    Ok(format!("{MANIFESTS} is new"))
}

fn template(root: &Path) -> Result<String, Error> {
    let helm = helm::build(root)?;
    say("render the chart");
    let mut template = command(helm);
    template.current_dir(root).args(["template", "quarry", CHART, "--set", "namespace.create=true"]);
    succeed(template.args(["--namespace", NAMESPACE, "--kube-version", KUBERNETES]))
}

/// Without Helm's own remarks, and with one blank line fewer at each object's end.
fn plain(rendered: &str) -> String {
    let mut text = String::new();
    for line in rendered.lines().filter(|line| !line.starts_with("# Source: ")) {
        if line == "---" {
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn helm_s_remarks_and_spare_lines_go() {
        let rendered = "---\n# Source: a/b.yaml\n# why\nkind: A\n\n---\n# Source: a/c.yaml\nkind: B  \n";
        assert_eq!(plain(rendered), "---\n# why\nkind: A\n---\nkind: B\n");
    }
}
