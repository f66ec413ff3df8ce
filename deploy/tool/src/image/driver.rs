//! The driver that goes into the image, built by cargo on this machine.
//!
//! Not in a stage of the image: cargo's caches are here, and so is what the tests have built.

use std::env;
use std::fs;
use std::path::Path;

use clap::ValueEnum;

use super::Plan;
use super::arch::Arch;
use crate::error::Error;
use crate::program::{command, succeed};

/// How cargo builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// For use.
    Release,
    /// For tests: there is nothing to build where the tests themselves are built.
    Dev,
}

impl Profile {
    const fn folder(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dev => "debug",
        }
    }

    /// A tests' image is told from one for use by the name of its file.
    const fn mark(self) -> &'static str {
        match self {
            Self::Release => "",
            Self::Dev => "-dev",
        }
    }

    /// The file of the image: `quarry.tar` for most, `quarry-arm64.tar`, `quarry-dev.tar`.
    pub(super) fn archive(self, arch: Arch) -> String {
        let arch = if arch == Arch::Amd64 { String::new() } else { format!("-{arch}") };
        format!("quarry{arch}{}.tar", self.mark())
    }
}

/// Builds it, and lays a copy of it where builders of images see it.
///
/// For another architecture Rust's library for it and a C compiler are needed: `rustup target add`, and Debian's
/// gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu.
///
/// # Errors
/// cargo's own.
pub(super) fn build(plan: &Plan) -> Result<(), Error> {
    let mut cargo = command(env!("CARGO"));
    cargo.current_dir(&plan.root).args(["build", "--locked"]);
    match plan.profile {
        Profile::Release => cargo.args(["--release", "--package", "quarry", "--bin", "quarry"]),
        // As the Makefile has it: with another choice cargo builds most of it once more.
        Profile::Dev => cargo.args(["--workspace", "--bins", "--examples"]),
    };
    let mut built = plan.root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    if !plan.arch.is_native() {
        let triple = plan.arch.triple();
        let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
        cargo.args(["--target", triple]).env(linker, format!("{}-gcc", triple.replace("-unknown", "")));
        built.push(triple);
    }
    succeed(&mut cargo)?;
    copy(&built.join(plan.profile.folder()).join("quarry"), &plan.root.join(&plan.binary))
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::copy(from, to).map(drop).map_err(Error::at("copy", from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_image_has_its_own_file() {
        assert_eq!(Profile::Release.archive(Arch::Amd64), "quarry.tar");
        assert_eq!(Profile::Release.archive(Arch::Arm64), "quarry-arm64.tar");
        assert_eq!(Profile::Dev.archive(Arch::Amd64), "quarry-dev.tar");
    }
}
