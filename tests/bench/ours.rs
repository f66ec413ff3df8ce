//! This side: the driver as a process, called over its socket.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quarry::proto::csi::v1 as csi;

use super::processes;
use super::samples::Samples;
use crate::driver::processes::is_lvm_shell;
use crate::driver::{Client, Driver, Mode, VG, folder, pv_name, until};

/// The driver to measure, where this variable names one: `make bench` names the one that is built for use.
const DRIVER: &str = "QUARRY_BENCH_DRIVER";

pub(super) struct Ours {
    pub(super) driver: Driver,
    pub(super) client: Client,
    /// How many volumes it was asked for: no two have one name.
    created: AtomicUsize,
}

/// A volume of the driver's.
pub(super) struct Volume {
    pub(super) id: String,
    name: String,
    mode: Mode,
}

impl Volume {
    fn staging(&self) -> PathBuf {
        folder(&format!("{}-staging", self.name))
    }

    pub(super) fn target(&self) -> PathBuf {
        self.staging().with_file_name(format!("{}-target", self.name))
    }
}

/// The path of the driver that is measured.
pub(super) fn driver() -> String {
    std::env::var(DRIVER).unwrap_or_else(|_| env!("CARGO_BIN_EXE_quarry").to_owned())
}

impl Ours {
    /// Starts the driver on [`VG`]; `log` is the level that it logs at.
    pub(super) async fn start(log: &str) -> Self {
        let mut command = Command::new(driver());
        command.args(["standalone", "--volume-group", VG, "--log", log]);
        let driver = Driver::launch(command).await;
        let client = driver.client().await;
        Self { driver, client, created: AtomicUsize::new(0) }
    }

    /// What it costs to call the driver for nothing: part of all that is measured of it.
    pub(super) async fn empty_call(&self, samples: usize) -> Samples {
        let mut client = self.client.clone();
        let mut times = Samples::default();
        for _ in 0..samples {
            let begin = Instant::now();
            assert!(client.probe().await.unwrap());
            times.add(begin.elapsed());
        }
        times
    }

    pub(super) fn stop(self) {
        assert!(self.driver.stop().success());
    }

    /// Makes a volume as csi-provisioner has it made, and tells how long the call took.
    pub(super) async fn create(&self, size: u64, mode: Mode) -> (Volume, Duration) {
        let name = pv_name(self.created.fetch_add(1, Ordering::Relaxed));
        let claim = [("name", "data-database-0"), ("namespace", "production"), ("name", name.as_str())];
        let kinds = ["pvc", "pvc", "pv"];
        let parameters: HashMap<_, _> = kinds
            .iter()
            .zip(claim)
            .map(|(kind, (key, value))| (format!("csi.storage.k8s.io/{kind}/{key}"), value.to_owned()))
            .collect();
        let request = csi::CreateVolumeRequest {
            name: name.clone(),
            capacity_range: Some(csi::CapacityRange {
                required_bytes: size.try_into().unwrap(),
                limit_bytes: 0,
            }),
            volume_capabilities: vec![mode.capability()],
            parameters,
            ..Default::default()
        };
        let mut client = self.client.clone();
        let begin = Instant::now();
        let volume = client.create_with(request).await.unwrap();
        let time = begin.elapsed();
        (Volume { id: volume.volume_id, name, mode }, time)
    }

    /// Waits until the volume is prepared.
    pub(super) async fn prepared(&self, volume: &Volume) {
        self.driver.log().soon(&["prepared", &volume.id]).await;
    }

    /// Waits until the driver has nothing under way, and has taken note of what others did: it is asked for its
    /// capacity, as csi-provisioner does now and then. So each sample begins where nothing else is going on.
    pub(super) async fn rest(&self) {
        until("no program runs for the driver", async || {
            processes::children(self.driver.pid()).into_iter().all(is_lvm_shell)
        })
        .await;
        self.client.clone().capacity().await.unwrap();
    }

    pub(super) async fn expand(&self, volume: &Volume, size: u64) -> Duration {
        let mut client = self.client.clone();
        let begin = Instant::now();
        client.expand(&volume.id, size, volume.mode).await.unwrap();
        begin.elapsed()
    }

    pub(super) async fn stage_and_publish(&self, volume: &Volume) -> Duration {
        let (mut client, staging, target) = (self.client.clone(), volume.staging(), volume.target());
        let begin = Instant::now();
        client.stage(&volume.id, &staging, volume.mode).await.unwrap();
        client.publish(&volume.id, &staging, &target, volume.mode).await.unwrap();
        begin.elapsed()
    }

    pub(super) async fn unpublish_and_unstage(&self, volume: &Volume) {
        let mut client = self.client.clone();
        client.unpublish(&volume.id, &volume.target()).await.unwrap();
        client.unstage(&volume.id, &volume.staging()).await.unwrap();
    }

    pub(super) async fn delete(&self, volume: &Volume) -> Duration {
        let mut client = self.client.clone();
        let begin = Instant::now();
        client.delete(&volume.id).await.unwrap();
        begin.elapsed()
    }
}
