use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// A configuration file has a few hundred bytes; what is longer than this is something else.
const LONGEST: u64 = 1 << 20;

/// A configuration file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("the configuration file {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// It is no configuration.
    #[error("the configuration file {} is wrong", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        #[source]
        source: Box<toml::de::Error>,
    },
}

/// Reads a configuration file. Blocks.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
        .map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text)
        .map_err(|source| FileError::Parse { path: path.to_owned(), source: Box::new(source) })
}
