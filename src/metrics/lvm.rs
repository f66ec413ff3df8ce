use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::lvm::{Backend, Command, Engine, EngineError, Fingerprint, PvRow, Reply};
use crate::types::VgName;

/// LVM, with a watch in hand. Reading and flushing metadata on the disks is no command, and not counted.
pub struct MeteredBackend {
    inner: Arc<dyn Backend>,
    commands: Commands,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    command: &'static str,
}

#[derive(Debug, Clone)]
struct Commands {
    seconds: Family<Label, Histogram>,
    failures: Family<Label, Counter>,
}

/// In seconds.
const BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0];

/// The command that looks at every disk.
const LOOK: &str = "pvs";

/// The command that backs the metadata up.
const BACK_UP: &str = "vgcfgbackup";

impl Commands {
    fn new() -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        Self { seconds, failures: Family::default() }
    }

    /// Takes the time of one command. `failed` judges what came of it.
    async fn time<T>(
        &self,
        command: &'static str,
        work: impl Future<Output = T>,
        failed: impl Fn(&T) -> bool,
    ) -> T {
        let started = Instant::now();
        let done = work.await;
        let label = Label { command };
        self.seconds.get_or_create(&label).observe(started.elapsed().as_secs_f64());
        // Also where none has failed yet: a rate needs a zero to begin with.
        let failures = self.failures.get_or_create(&label);
        if failed(&done) {
            failures.inc();
        }
        done
    }
}

impl MeteredBackend {
    /// Puts it round `inner`, and lets `registry` show what it measures.
    pub fn new(inner: Arc<dyn Backend>, registry: &mut Registry) -> Self {
        let commands = Commands::new();
        registry.register_with_unit(
            "lvm_command_duration",
            "How long LVM's commands took, from when they were asked for",
            Unit::Seconds,
            commands.seconds.clone(),
        );
        registry.register(
            "lvm_command_failures",
            "LVM's commands that were refused, failed, or brought no answer",
            commands.failures.clone(),
        );
        Self { inner, commands }
    }
}

#[async_trait::async_trait]
impl Backend for MeteredBackend {
    async fn look(&self) -> Result<Vec<PvRow>, EngineError> {
        self.commands.time(LOOK, self.inner.look(), Result::is_err).await
    }

    fn system_id(&self) -> Option<&str> {
        self.inner.system_id()
    }

    fn open(&self, vg: &VgName, devices: &[PathBuf]) -> Arc<dyn Engine> {
        Arc::new(MeteredEngine { inner: self.inner.open(vg, devices), commands: self.commands.clone() })
    }

    async fn fingerprint(&self, devices: &[PathBuf]) -> Result<Fingerprint, EngineError> {
        self.inner.fingerprint(devices).await
    }

    async fn flush(&self, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.inner.flush(devices).await
    }

    async fn back_up(&self, vg: &VgName, devices: &[PathBuf]) -> Result<(), EngineError> {
        self.commands.time(BACK_UP, self.inner.back_up(vg, devices), Result::is_err).await
    }
}

/// One group's engine, likewise.
struct MeteredEngine {
    inner: Arc<dyn Engine>,
    commands: Commands,
}

#[async_trait::async_trait]
impl Engine for MeteredEngine {
    async fn run(&self, vg: &VgName, command: &Command) -> Result<Reply, EngineError> {
        let failed = |answer: &Result<Reply, EngineError>| !matches!(answer, Ok(reply) if reply.success);
        self.commands.time(command.name(), self.inner.run(vg, command), failed).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lvm::scripted::{Fault, ScriptedBackend};
    use crate::metrics::Metrics;
    use crate::types::Extents;

    #[tokio::test]
    async fn what_lvm_refuses_or_never_answers_is_a_failure() {
        let lvm = ScriptedBackend::new();
        lvm.add_vg("vg0", &[("/dev/sda", 100)]);
        let metrics = Metrics::new("test");
        let backend: Arc<ScriptedBackend> = Arc::clone(&lvm);
        let metered = metrics.add(|registry| MeteredBackend::new(backend, registry));
        let vg = "vg0".parse().unwrap();
        let engine = metered.open(&vg, &["/dev/sda".into()]);
        let create = |name: &str| Command::Create {
            name: name.parse().unwrap(),
            extents: Extents::new(1),
            tags: Vec::new(),
        };
        engine.run(&vg, &create("a")).await.unwrap();
        for (name, fault) in [("b", Fault::Refuse), ("c", Fault::LostAfter)] {
            lvm.on_change(1, fault);
            drop(engine.run(&vg, &create(name)).await);
        }
        engine.run(&vg, &Command::Volumes).await.unwrap();
        metered.look().await.unwrap();
        lvm.fail_looks(true);
        metered.look().await.unwrap_err();
        lvm.fail_backups(true);
        metered.back_up(&vg, &["/dev/sda".into()]).await.unwrap_err();
        let text = metrics.text();
        for (command, count, failures) in
            [("lvcreate", 3, 2), ("lvs", 1, 0), ("pvs", 2, 1), ("vgcfgbackup", 1, 1)]
        {
            for line in [
                format!("quarry_lvm_command_duration_seconds_count{{command=\"{command}\"}} {count}\n"),
                format!("quarry_lvm_command_failures_total{{command=\"{command}\"}} {failures}\n"),
            ] {
                assert!(text.contains(&line), "{line}: {text}");
            }
        }
    }
}
