//! What the driver says that it can do: all of it, in one place.
//!
//! Callers choose their calls by these, so a line here is a promise: an RPC behind it must work.

use crate::proto::csi::v1 as proto;
use proto::controller_service_capability as controller;
use proto::node_service_capability as node;
use proto::plugin_capability::{self as plugin, service, volume_expansion};

/// Of the plugin as a whole.
pub const PLUGIN: [plugin::Type; 3] = [
    plugin_service(service::Type::ControllerService),
    plugin_service(service::Type::VolumeAccessibilityConstraints),
    // Online means that volumes grow whether they are in use or not.
    plugin::Type::VolumeExpansion(plugin::VolumeExpansion { r#type: volume_expansion::Type::Online as i32 }),
];

/// Of the Controller service.
pub const CONTROLLER: [controller::rpc::Type; 5] = [
    controller::rpc::Type::CreateDeleteVolume,
    controller::rpc::Type::GetCapacity,
    controller::rpc::Type::ExpandVolume,
    controller::rpc::Type::SingleNodeMultiWriter,
    controller::rpc::Type::ListVolumes,
];

/// Of the Node service.
pub const NODE: [node::rpc::Type; 4] = [
    node::rpc::Type::StageUnstageVolume,
    node::rpc::Type::GetVolumeStats,
    node::rpc::Type::ExpandVolume,
    node::rpc::Type::SingleNodeMultiWriter,
];

const fn plugin_service(service: service::Type) -> plugin::Type {
    plugin::Type::Service(plugin::Service { r#type: service as i32 })
}

pub(super) fn plugin() -> Vec<proto::PluginCapability> {
    PLUGIN.map(|capability| proto::PluginCapability { r#type: Some(capability) }).into()
}

/// Those of the Controller service, as messages.
pub(super) fn controller() -> Vec<proto::ControllerServiceCapability> {
    messages(CONTROLLER)
}

/// Those of the Controller service of a whole cluster, as messages: while a node is away, a list would be false.
pub fn router() -> Vec<proto::ControllerServiceCapability> {
    messages(CONTROLLER.into_iter().filter(|rpc| *rpc != controller::rpc::Type::ListVolumes))
}

fn messages(
    offered: impl IntoIterator<Item = controller::rpc::Type>,
) -> Vec<proto::ControllerServiceCapability> {
    let capability = |rpc| controller::Type::Rpc(controller::Rpc { r#type: rpc as i32 });
    let message = |rpc| proto::ControllerServiceCapability { r#type: Some(capability(rpc)) };
    offered.into_iter().map(message).collect()
}

pub(super) fn node() -> Vec<proto::NodeServiceCapability> {
    let capability = |rpc| node::Type::Rpc(node::Rpc { r#type: rpc as i32 });
    NODE.map(|rpc| proto::NodeServiceCapability { r#type: Some(capability(rpc)) }).into()
}
