//! What Prometheus is shown is documented, and true.

mod documented;
mod monitoring;
mod promtool;
mod scrape;
mod truth;

pub(crate) use scrape::Scrape;
