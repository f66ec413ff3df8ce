use super::found::known;
use super::volumes::Volumes;
use super::{VolumeError, VolumeInfo};
use crate::lvm::Health;

impl Volumes {
    /// All volumes of the groups that serve here, in the order of their ids. LVs of others, and those whose tags
    /// cannot be understood, are no volumes.
    ///
    /// # Errors
    /// A group cannot be read, or there are two copies of a disk of it: a list without its volumes would say
    /// that they are gone.
    pub async fn list(&self) -> Result<Vec<VolumeInfo>, VolumeError> {
        let mut volumes = Vec::new();
        for group in self.groups.all().into_iter().filter(|group| group.name().is_some()) {
            match group.health()? {
                Health::Healthy | Health::Partial(_) => {}
                Health::DuplicatePv(_) => group.healthy()?,
                // It belongs to another machine, or can be used by none.
                Health::Exported
                | Health::Foreign(_)
                | Health::Shared
                | Health::SameName(_)
                | Health::LongName => continue,
            }
            let view = group.view().await?;
            let known = view.lvs().filter_map(|lv| known(&group, &view, lv));
            volumes.extend(known.map(|(info, _)| info));
        }
        volumes.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(volumes)
    }
}
