//! One word for all that the programs are made of.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::table::{FLAGS, Program};
use crate::digest::Digest;
use crate::program::{command, succeed};
use crate::{Error, paths};

const LIMIT: Duration = Duration::from_secs(60);

/// The digest of the pinned versions, our own sources, the flags, and the compiler's version.
pub(super) async fn of(module: &Path, programs: &[Program]) -> Result<String, Error> {
    let mut digest = Digest::new();
    let compiler = succeed(command("go").current_dir(module).args(["env", "GOVERSION"]), LIMIT).await?;
    digest.add(compiler.trim());
    digest.add(FLAGS.join(" "));
    for program in programs {
        digest.add(program.name).add(program.package).add(&program.link_flags);
    }
    for source in sources(module)? {
        digest.add(paths::read(&source)?);
    }
    Ok(digest.to_hex())
}

/// `go.mod`, `go.sum` and our own sources, in order.
fn sources(module: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = vec![module.join("go.mod"), module.join("go.sum")];
    for folder in folder_entries(module)?.into_iter().filter(|path| path.is_dir()) {
        files.extend(
            folder_entries(&folder)?.into_iter().filter(|path| path.extension() == Some(OsStr::new("go"))),
        );
    }
    files.sort();
    Ok(files)
}

fn folder_entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(Error::at("read", folder))
}
