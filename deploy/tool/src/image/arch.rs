//! The architectures.

use std::env::consts;
use std::fmt;

use clap::ValueEnum;

use crate::error::Error;

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

    /// Rust's name for it, with the C library that the image has.
    pub(super) const fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The program that starts all others (ld.so(8)); it can list what a program needs without running it.
    pub(super) const fn loader(self) -> &'static str {
        match self {
            Self::Amd64 => "/lib64/ld-linux-x86-64.so.2",
            Self::Arm64 => "/lib/ld-linux-aarch64.so.1",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
