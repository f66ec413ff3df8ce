//! The container image: built by whatever builds images here, tried, and kept as one file.

mod arch;
mod base;
mod builder;
mod driver;
mod key;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use crate::{ROOT, say};
use arch::Arch;
use builder::Builder;
use driver::Profile;

/// No registry has this name, so that nobody fetches somebody else's image by it.
const REPOSITORY: &str = "localhost/quarry";

/// How to build the image.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The architecture to build for.
    #[arg(long, value_enum, env = "ARCH", default_value_t = Arch::Amd64)]
    arch: Arch,
    /// How the driver is built: dev is quick where the tests are built already, and for tests only.
    #[arg(long, value_enum, env = "PROFILE", default_value_t = Profile::Release)]
    profile: Profile,
    /// What builds; by default docker with a running daemon, else podman, else buildah.
    #[arg(long, value_enum, env = "BUILDER")]
    with: Option<Builder>,
}

/// What is built from what.
struct Plan {
    arch: Arch,
    profile: Profile,
    builder: Builder,
    root: PathBuf,
    /// The driver, relative to the root.
    binary: String,
    name: String,
    /// The folder of all that is made on the way.
    home: PathBuf,
    archive: PathBuf,
}

impl Plan {
    fn new(options: &Options) -> Result<Self, Error> {
        let root = Path::new(ROOT).canonicalize().map_err(Error::at("find", Path::new(ROOT)))?;
        let home = root.join("target/image");
        fs::create_dir_all(&home).map_err(Error::at("make", &home))?;
        let Options { arch, profile, .. } = *options;
        Ok(Self {
            arch,
            profile,
            builder: options.with.map_or_else(Builder::find, Ok)?,
            binary: format!("target/image/quarry-{arch}"),
            name: format!("{REPOSITORY}:{}", env!("CARGO_PKG_VERSION")),
            archive: home.join(profile.archive(arch)),
            root,
            home,
        })
    }
}

/// Builds the image, unless the one that is there was built from the very same things; the answer is a line that
/// says what there is.
///
/// # Errors
/// Something that is needed is missing, or the image does not work.
pub(crate) fn build(options: &Options) -> Result<String, Error> {
    let plan = Plan::new(options)?;
    say(&format!("build quarry for {}", plan.arch));
    driver::build(&plan)?;
    let key = key::of(&plan)?;
    if !key::is_current(&plan.archive, &key) {
        say(&format!("build {} with {}", plan.name, plan.builder));
        plan.builder.build(&plan)?;
        if plan.arch.is_native() {
            say("try every program in it");
            trial::run(&plan)?;
        }
        plan.builder.export(&plan)?;
        key::write(&plan.archive, &key)?;
    }
    let size = fs::metadata(&plan.archive).map_err(Error::at("look at", &plan.archive))?.len();
    let shown = plan.archive.strip_prefix(&plan.root).unwrap_or(&plan.archive);
    Ok(format!("{} for {}: {}, {}", plan.name, plan.arch, shown.display(), megabytes(size)))
}

fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn a_size_is_never_said_to_be_less_than_it_is() {
        assert_eq!(megabytes(12_000_000), "12.0 MB");
        assert_eq!(megabytes(12_000_001), "12.1 MB");
    }
}
