use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::filter::accept;
use crate::lvm::EngineError;

/// Links to the disks of groups, by which LVM finds them: with each command it looks at all that lies where it looks
/// for devices, and `/dev` holds three nodes for each LV.
///
/// What a link leads to follows from its name, so that all drivers share the folder and nobody ever clears it: an
/// lvm that outlives its driver still needs it.
#[derive(Debug, Clone)]
pub(super) struct Links {
    folder: PathBuf,
}

impl Links {
    /// The links in a run directory.
    ///
    /// # Errors
    /// [`EngineError::Unspeakable`]: LVM could not be told of a folder with that name.
    pub(super) fn new(run_dir: &Path) -> Result<Self, EngineError> {
        // LVM takes doubled slashes out of the names of devices.
        let folder: PathBuf = run_dir.join("links").components().collect();
        let unspeakable = || {
            let dir = run_dir.display();
            EngineError::Unspeakable(format!("LVM cannot be told of a run directory with the name {dir}"))
        };
        // A range of extents is written behind a device's name and a colon.
        let spoken = accept(&folder).is_ok() && !folder.as_os_str().as_encoded_bytes().contains(&b':');
        if spoken { Ok(Self { folder }) } else { Err(unspeakable()) }
    }

    /// Where they lie.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The link to a device: LVM's name of it.
    pub(super) fn to(&self, device: &Path) -> PathBuf {
        self.folder.join(device.strip_prefix("/").unwrap_or(device))
    }

    /// Sees to it that there are links to these devices. This blocks.
    ///
    /// # Errors
    /// One cannot be made.
    pub(super) fn make(&self, devices: &[PathBuf]) -> io::Result<()> {
        for device in devices {
            let link = self.to(device);
            if link.is_symlink() {
                continue;
            }
            if let Some(folder) = link.parent() {
                fs::create_dir_all(folder)?;
            }
            match symlink(device, &link) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// What LVM says, with the devices' own paths in it.
    pub(super) fn plain(&self, words: &str) -> String {
        words.replace(&format!("{}/", self.folder.display()), "/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_links_and_told_by_their_own_names() {
        let run = tempfile::tempdir().unwrap();
        let links = Links::new(run.path()).unwrap();
        let devices: [PathBuf; 2] = ["/dev/mapper/luks".into(), "/dev/sda".into()];
        for _ in 0..2 {
            links.make(&devices).unwrap();
        }
        for device in &devices {
            assert_eq!(fs::read_link(links.to(device)).unwrap(), *device);
            let told = format!("cannot read {}.", links.to(device).display());
            assert_eq!(links.plain(&told), format!("cannot read {}.", device.display()));
        }
    }

    #[test]
    fn a_run_directory_is_one_that_lvm_can_be_told_of() {
        assert_eq!(Links::new(Path::new("/run//quarry/")).unwrap().folder(), Path::new("/run/quarry/links"));
        for bad in ["/run/my quarry", "/run/a:b", "/run/ü", "/run/../a", "/run/a|b"] {
            assert!(Links::new(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
