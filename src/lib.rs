//! Quarry: a CSI driver that cuts LVM logical volumes into local persistent volumes.
//!
//! The map of the house. Imports point down this list only; `tests/layers.rs` holds that.
//!
//! | layer | module | what it is |
//! |---|---|---|
//! | 0 | [`types`] | the words of the house: parsed once, valid ever after; pure |
//! | 1 | `exec` | the only place that starts programs |
//! | 2 | `lvm` | the LVM engine: commands, reports, one writer per volume group |
//! | 2 | [`fs`] | file systems, one file each |
//! | 2 | [`mount`] | the mount table, and changes to it |
//! | 2 | [`device`] | block devices: number, size, zeroing |
//! | 2 | [`cluster`] | everything that names the kube crate |
//! | 3 | `volume` | what happens to a volume, one file per verb |
//! | 3 | [`link`] | the wire between node and controller: hello, TLS, the turned connection |
//! | 4 | [`csi`] | the gRPC services: message in, verb, message out |
//! | 5 | [`router`] | the controller role: which node owns what, and passing calls on |
//! | 6 | [`server`] | sockets and the layers around every call |
//! | top | [`inspect`] | what people are shown of volumes and groups: it looks, and changes nothing |
//! | top | [`metrics`] | what Prometheus is shown |
//! | top | [`cli`], [`config`], [`telemetry`], [`app`] | the command line, the configuration, the logs, the wiring |

pub mod app;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod csi;
pub mod device;
pub mod exec;
pub mod fs;
pub mod inspect;
pub mod link;
pub mod lvm;
pub mod metrics;
pub mod mount;
pub mod proto;
pub mod router;
pub mod server;
pub mod telemetry;
pub mod types;
pub mod volume;
