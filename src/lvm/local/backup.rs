//! Backups of groups' metadata in a directory of the host, as `vgcfgbackup` writes them.
//!
//! ```text
//!   <directory>/<VG UUID>/current.vg        the newest
//!   <directory>/<VG UUID>/seqno-41.vg       earlier ones, by the number of the commit
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::blocking;
use super::home::SystemDir;
use super::process::Processes;
use crate::exec::ExecError;
use crate::lvm::EngineError;
use crate::types::{VgName, VgUuid};

/// How many earlier backups are kept for each group.
const EARLIER: usize = 10;

/// The backups of all groups.
#[derive(Debug)]
pub(super) struct Backups {
    directory: PathBuf,
    places: Mutex<HashMap<VgName, Arc<Place>>>,
}

/// What backups of one group are made with: one at a time, and with one configuration, so that a disk
/// that hangs costs one process.
#[derive(Debug)]
struct Place {
    devices: Vec<PathBuf>,
    dir: SystemDir,
    turn: tokio::sync::Mutex<()>,
}

impl Backups {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, places: Mutex::default() }
    }

    /// Makes a backup of a group; `system_dir` gives a configuration that sees its devices.
    ///
    /// # Errors
    /// LVM did not do it, or it cannot be kept.
    pub(super) async fn make(
        &self,
        processes: &Processes,
        vg: &VgName,
        devices: &[PathBuf],
        system_dir: impl FnOnce() -> SystemDir,
    ) -> Result<(), EngineError> {
        let (place, old) = self.place(vg, devices, system_dir);
        if let Some(old) = old {
            old.dir.remove().await;
        }
        let _turn = place.turn.lock().await;
        // Here the next driver clears away what lvm leaves behind where it is killed.
        let written = place.dir.path().await?.join("backup.vg");
        write(processes, &place.dir, vg, &written).await?;
        blocking(&self.directory, move |directory| keep(directory, &written)).await
    }

    /// The group's place, and the one that it had while it lay on other devices.
    fn place(
        &self,
        vg: &VgName,
        devices: &[PathBuf],
        system_dir: impl FnOnce() -> SystemDir,
    ) -> (Arc<Place>, Option<Arc<Place>>) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(vg).filter(|place| place.devices == devices) {
            return (Arc::clone(place), None);
        }
        let place =
            Place { devices: devices.to_vec(), dir: system_dir(), turn: tokio::sync::Mutex::default() };
        let place = Arc::new(place);
        let old = places.insert(vg.clone(), Arc::clone(&place));
        (place, old)
    }
}

/// Lets LVM write a backup. It takes no lock, so that it never keeps a change waiting.
async fn write(processes: &Processes, dir: &SystemDir, vg: &VgName, file: &Path) -> Result<(), EngineError> {
    let words: [&OsStr; 5] = [
        "vgcfgbackup".as_ref(),
        "--nolocking".as_ref(),
        "--file".as_ref(),
        file.as_ref(),
        vg.as_str().as_ref(),
    ];
    let output = processes.query(dir, &words).await?;
    if output.success() {
        return Ok(());
    }
    let command = format!("lvm vgcfgbackup {vg}");
    let stderr = dir.links().plain(&output.stderr);
    Err(ExecError::Failed { command, code: output.code, stderr }.into())
}

/// Takes a backup that LVM has just written into the directory of its group. This blocks.
///
/// # Errors
/// It is no backup, or the directory cannot be written.
fn keep(directory: &Path, written: &Path) -> io::Result<()> {
    let text = fs::read_to_string(written)?;
    let (uuid, seqno) = identity(&text).ok_or_else(|| io::Error::other("this is no backup of a group"))?;
    let own = directory.join(uuid.as_str());
    fs::create_dir_all(&own)?;
    let one_at_a_time = File::open(&own)?;
    // Another driver is in it for as long as it takes to write one file.
    one_at_a_time.lock()?;
    let unfinished = own.join("unfinished");
    fs::write(&unfinished, text)?;
    File::open(&unfinished)?.sync_all()?;
    let current = own.join("current.vg");
    let old = fs::read_to_string(&current).ok().and_then(|text| identity(&text));
    if let Some((_, old)) = old.filter(|(_, old)| *old != seqno) {
        fs::rename(&current, own.join(format!("seqno-{old}.vg")))?;
    }
    fs::rename(&unfinished, &current)?;
    prune(&own)?;
    one_at_a_time.sync_all()
}

/// The group's UUID and the number of the commit: the first of each in the text, since the section of
/// the group itself comes first (lvm2, lib/format_text/export.c).
fn identity(text: &str) -> Option<(VgUuid, u64)> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let uuid = value("id = ")?.trim_matches('"').parse().ok()?;
    Some((uuid, value("seqno = ")?.parse().ok()?))
}

/// Keeps the newest of the earlier backups.
fn prune(own: &Path) -> io::Result<()> {
    let mut earlier = Vec::new();
    for entry in fs::read_dir(own)? {
        let name = entry?.file_name();
        let seqno = name.to_str().and_then(|name| name.strip_prefix("seqno-")?.strip_suffix(".vg"));
        earlier.extend(seqno.and_then(|seqno| seqno.parse::<u64>().ok()));
    }
    earlier.sort_unstable_by_key(|seqno| std::cmp::Reverse(*seqno));
    for seqno in earlier.into_iter().skip(EARLIER) {
        fs::remove_file(own.join(format!("seqno-{seqno}.vg")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

    fn write(directory: &Path, seqno: u64) {
        let written = directory.with_extension("vg");
        let text = format!(
            "contents = \"x\"\nvg0 {{\n\tid = \"{UUID}\"\n\tseqno = {seqno}\n\tpv0 {{\n\t\tid = \"x\"\n"
        );
        fs::write(&written, text).unwrap();
        keep(directory, &written).unwrap();
    }

    #[test]
    fn the_newest_is_current_and_a_bounded_number_of_earlier_ones_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        for seqno in 1..=20 {
            write(directory.path(), seqno);
            write(directory.path(), seqno);
        }
        let own = directory.path().join(UUID);
        let current = fs::read_to_string(own.join("current.vg")).unwrap();
        assert_eq!(identity(&current), Some((UUID.parse().unwrap(), 20)));
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1 + EARLIER);
        assert!(own.join("seqno-19.vg").exists() && !own.join("seqno-9.vg").exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_backup_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let written = directory.path().join("unfinished");
        fs::write(&written, "nothing").unwrap();
        assert!(keep(directory.path(), &written).is_err());
    }
}
