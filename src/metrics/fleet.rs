use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::router::Fleet;

/// Shows what a controller knows of its nodes.
#[derive(Debug)]
pub struct FleetMetrics(pub Arc<Fleet>);

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, value| {
            ConstGauge::<u64>::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)
        };
        let nodes = u64::try_from(self.0.count()).unwrap_or(u64::MAX);
        gauge("nodes_connected", "Nodes that are connected to this controller", nodes)?;
        let help =
            "Volumes that were never used and whose claims are gone, by the leader's last look; 0 elsewhere";
        gauge("orphaned_volumes", help, self.0.orphans())
    }
}
