use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What was served at `/metrics`: the text, and what it says.
#[derive(Debug)]
pub(crate) struct Scrape {
    text: String,
    /// The kind of each metric, by name.
    pub(super) kinds: BTreeMap<String, String>,
    /// The names of each metric's labels, without `le` of histograms.
    pub(super) labels: BTreeMap<String, BTreeSet<String>>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    pub(crate) async fn of(address: SocketAddr) -> Self {
        let asked = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let answer = tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
        Self::read(text)
    }

    fn read(text: &str) -> Self {
        let mut scrape = Self {
            text: text.to_owned(),
            kinds: BTreeMap::new(),
            labels: BTreeMap::new(),
            samples: BTreeMap::new(),
        };
        for line in text.lines() {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                scrape.take(line);
            }
        }
        scrape
    }

    fn take(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let keys = labels.split(',').filter_map(|label| label.split_once('=')).map(|(key, _)| key.to_owned());
        let metric = self
            .kinds
            .keys()
            .filter(|metric| name.starts_with(metric.as_str()))
            .max_by_key(|metric| metric.len());
        let metric = metric.unwrap_or_else(|| panic!("{line}")).clone();
        self.labels.entry(metric).or_default().extend(keys.filter(|key| key != "le"));
        self.samples.insert(series.to_owned(), value.parse().unwrap());
    }

    /// The value of the one series of that name with all of these labels.
    #[track_caller]
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has =
            |series: &str| labels.iter().all(|(key, value)| series.contains(&format!("{key}=\"{value}\"")));
        let named = |series: &str| series.split('{').next() == Some(name);
        let found: Vec<f64> = self
            .samples
            .iter()
            .filter(|(series, _)| named(series) && has(series))
            .map(|(_, value)| *value)
            .collect();
        let [value] = found.as_slice() else {
            panic!("{name}{labels:?} is there {} times: {}", found.len(), self.text)
        };
        *value
    }
}
