//! Loads kernel modules without a program's help: each start of one would take 50 ms of every guest's start.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};

use crate::Error;
use crate::kernel::MODULES;

/// The modules of the running kernel, as they lie on the host.
pub(super) fn folder() -> Result<PathBuf, Error> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").map_err(Error::io("read the kernel's release"))?;
    Ok(Path::new(MODULES).join(release.trim()))
}

/// Loads a module and those that it needs.
pub(super) fn load(folder: &Path, name: &str) -> Result<(), Error> {
    let table = folder.join("modules.dep");
    let text = fs::read_to_string(&table).map_err(Error::at("read", &table))?;
    let files = files_of(&text, name)
        .ok_or_else(|| Error::Invalid(format!("{} does not know the module {name}", table.display())))?;
    files.iter().try_for_each(|file| insert(&folder.join(file)))
}

/// The files to load, in order. The table names a module's needs after it, the deepest last.
fn files_of<'a>(table: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let end = format!("/{name}.ko");
    let (own, needs) =
        table.lines().filter_map(|line| line.split_once(':')).find(|(own, _)| own.ends_with(&end))?;
    Some(needs.split_whitespace().rev().chain([own]).collect())
}

fn insert(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::at("open the module", path))?;
    match finit_module(&file, c"", ModuleInitFlags::empty()) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(Error::at("load the module", path)(errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_loaded_first() {
        let table = "kernel/a/dm-mod.ko:\nkernel/b/dm-x.ko: kernel/b/top.ko kernel/a/dm-mod.ko\n";
        assert_eq!(files_of(table, "dm-mod"), Some(vec!["kernel/a/dm-mod.ko"]));
        let files = ["kernel/a/dm-mod.ko", "kernel/b/top.ko", "kernel/b/dm-x.ko"];
        assert_eq!(files_of(table, "dm-x"), Some(files.to_vec()));
        assert_eq!(files_of(table, "x"), None);
    }
}
