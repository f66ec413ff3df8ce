//! Disks that are plugged into a node that runs, and pulled out again.

use std::path::Path;
use std::time::Duration;

use tokio::task::spawn_blocking;

use super::Node;
use crate::{Error, wait};

/// How long a disk may take to appear.
const LIMIT: Duration = Duration::from_secs(60);

impl Node {
    /// Plugs in a disk whose content is a file of this machine, and returns its path on the node. When the node's power
    /// is cut the disk is no longer in it.
    ///
    /// # Errors
    ///
    /// When the node has no power, or the disk does not appear.
    pub(crate) async fn plug(&self, file: &Path) -> Result<String, Error> {
        let guest = self.guest().ok_or_else(|| Error::other(format!("{} has no power", self.name())))?;
        let file = file.to_owned();
        let disk = spawn_blocking(move || guest.add_disk_file(&file)).await.map_err(Error::other)??;
        let disk = disk.display().to_string();
        let look = || async { self.run_ok(&["blockdev", "--getsize64", &disk]).await };
        wait::try_until(&format!("{disk} to appear on {}", self.name()), LIMIT, look).await?;
        Ok(disk)
    }
}
