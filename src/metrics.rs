//! What Prometheus is shown. Everything shown is in memory: a scrape asks neither LVM nor a disk.
//!
//! What is measured is measured by decorators: [`MeteredBackend`] round LVM, and
//! [`Report`](crate::server::Report) round calls. Groups and nodes are looked at when somebody asks.
//! `docs/metrics.md` has them all in one table, which a test holds against what is served.

mod fleet;
mod groups;
mod lvm;

pub use fleet::FleetMetrics;
pub use groups::GroupMetrics;
pub use lvm::MeteredBackend;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The beginning of every metric's name.
const PREFIX: &str = "quarry";

/// The metrics of one process. Clones show the same.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Metrics {
    /// The metrics of a process in that role: its version, so far.
    pub fn new(role: &'static str) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let build = Family::<[(&'static str, &'static str); 2], Gauge>::default();
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION")), ("role", role)]).set(1);
        registry.register("build_info", "The driver's version and role; always 1", build);
        Self(Arc::new(Mutex::new(registry)))
    }

    /// Adds what `more` registers.
    pub fn add<T>(&self, more: impl FnOnce(&mut Registry) -> T) -> T {
        more(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All of them, in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            tracing::warn!("the metrics cannot be written");
        }
        text
    }
}
