//! The architectures, and the driver built for each.

use std::env::consts;
use std::fmt;
use std::path::Path;

use clap::ValueEnum;

use crate::error::Error;
use crate::program;

/// An architecture, by the name that images and Debian both use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The architecture of this machine.
    pub(crate) fn host() -> Result<Self, Error> {
        match consts::ARCH {
            "x86_64" => Ok(Self::Amd64),
            "aarch64" => Ok(Self::Arm64),
            other => Err(Error::Other(format!("images are built on amd64 and arm64, not on {other}"))),
        }
    }

    pub(crate) fn is_native(self) -> bool {
        Self::host().is_ok_and(|host| host == self)
    }

    const fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The program that starts all others (ld.so(8)); it can list what a program needs without running it.
    pub(crate) const fn loader(self) -> &'static str {
        match self {
            Self::Amd64 => "/lib64/ld-linux-x86-64.so.2",
            Self::Arm64 => "/lib/ld-linux-aarch64.so.1",
        }
    }

    /// Where cargo puts what it builds for it.
    pub(crate) fn cargo_folder(self) -> String {
        if self.is_native() { "target".to_owned() } else { format!("target/{}", self.triple()) }
    }

    /// The file of its image.
    pub(crate) const fn archive(self) -> &'static str {
        match self {
            Self::Amd64 => "quarry.tar",
            Self::Arm64 => "quarry-arm64.tar",
        }
    }

    /// Builds the driver. For another architecture Rust's library for it and a C compiler are needed:
    /// `rustup target add`, and Debian's gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu.
    ///
    /// # Errors
    /// cargo's own.
    pub(crate) fn compile(self, root: &Path) -> Result<(), Error> {
        let mut cargo = program::command(env!("CARGO"));
        cargo.current_dir(root).args([
            "build",
            "--release",
            "--locked",
            "--package",
            "quarry",
            "--bin",
            "quarry",
        ]);
        if !self.is_native() {
            let triple = self.triple();
            let linker = format!("{}-gcc", triple.replace("-unknown", ""));
            let shouted = triple.to_uppercase().replace('-', "_");
            cargo.args(["--target", triple]);
            cargo.env(format!("CARGO_TARGET_{shouted}_LINKER"), linker);
        }
        program::succeed(&mut cargo).map(drop)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
