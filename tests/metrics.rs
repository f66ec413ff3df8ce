//! What Prometheus is shown is documented, and true.

mod documented;
mod scrape;
mod truth;

pub(crate) use scrape::Scrape;
