use super::AppError;
use super::inspect::{print, start};
use crate::cluster::{Cluster, LostGroups, NodeView, VolumeView};
use crate::config::{LostChange, LostConfig, LostFlags};
use crate::csi::DRIVER_NAME;
use crate::inspect::{Missing, declared, missing, table};
use crate::types::VgUuid;

/// Prints the volume groups that are missing or declared lost, or changes which are.
pub(super) fn show_or_change(flags: LostFlags) -> Result<(), AppError> {
    let config = LostConfig::load(flags)?;
    let text = start()?.block_on(async {
        let cluster = Cluster::connect(&config.namespace).await?;
        let list = LostGroups::new(&cluster, &config.config_map);
        match config.change {
            None => show(&cluster, &list).await,
            Some(LostChange::Declare(vg)) => declare(&cluster, &list, &vg).await,
            Some(LostChange::Withdraw(vg)) => withdraw(&list, &vg).await,
        }
    })?;
    print(&text)
}

async fn show(cluster: &Cluster, list: &LostGroups) -> Result<String, AppError> {
    let (nodes, volumes) = look(cluster).await?;
    Ok(shown(&missing(&nodes, volumes, &list.read().await?)))
}

fn shown(groups: &[Missing]) -> String {
    if groups.is_empty() {
        return "No volume group is missing, and none is declared lost.\n".to_owned();
    }
    table(Missing::HEADING, groups.iter().map(Missing::cells))
        + "\nVolumes of a missing group cannot be deleted, as its disks may come back. If they never will:\n  \
           quarry lost --declare UUID\n"
}

async fn declare(cluster: &Cluster, list: &LostGroups, vg: &VgUuid) -> Result<String, AppError> {
    let (nodes, volumes) = look(cluster).await?;
    let text = declared(&nodes, volumes, vg)?;
    list.declare(vg).await?;
    Ok(text)
}

async fn withdraw(list: &LostGroups, vg: &VgUuid) -> Result<String, AppError> {
    if !list.read().await?.contains_key(vg) {
        return Ok(format!("Volume group {vg} was not declared lost.\n"));
    }
    list.withdraw(vg).await?;
    Ok(format!("Volume group {vg} is not declared lost any more.\n"))
}

async fn look(cluster: &Cluster) -> Result<(Vec<NodeView>, Vec<VolumeView>), AppError> {
    Ok((cluster.node_views().await?, cluster.volume_views(DRIVER_NAME).await?))
}
