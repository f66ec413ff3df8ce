use std::path::{Path, PathBuf};

use quarry::proto::csi::v1 as csi;
use quarry::types::{CsiName, DmName, LvName};

use super::client::Answer;
use super::{Client, MIB, Mode, VG, command, folder, report, sh, until};

/// A volume in [`VG`] as a kubelet has it: with a place where it is staged and one where it is published.
#[derive(Clone)]
pub(crate) struct Volume {
    client: Client,
    lv: LvName,
    pub(crate) id: String,
    pub(crate) mode: Mode,
    pub(crate) staging: PathBuf,
    pub(crate) target: PathBuf,
}

/// The size of an ext4 or raw volume whose size does not matter.
pub(crate) const SIZE: u64 = 16 * MIB;

/// The name of the volume number so and so, as csi-provisioner would make it; its LV has the same.
pub(crate) fn pv_name(number: usize) -> String {
    format!("pvc-00000000-0000-4000-8000-{number:012}")
}

/// The LV of the volume that is asked for by that name.
pub(crate) fn lv_of(name: &str) -> LvName {
    LvName::for_volume(&name.parse::<CsiName>().unwrap())
}

impl Volume {
    /// Makes a volume.
    pub(crate) async fn create(client: &Client, name: &str, mode: Mode) -> Self {
        client.clone().create_in(VG, name, mode.size(), mode).await.unwrap();
        Self::existing(client, name, mode)
    }

    /// A volume that was made before.
    pub(crate) fn existing(client: &Client, name: &str, mode: Mode) -> Self {
        Self::of_group(client, &report("vgs", "vg_uuid", VG).remove(0), name, mode)
    }

    /// The volume of that name in the group of that UUID, whether it is made or not.
    pub(crate) fn of_group(client: &Client, vg: &str, name: &str, mode: Mode) -> Self {
        let lv = lv_of(name);
        Self {
            client: client.clone(),
            id: format!("{vg}/{lv}"),
            lv,
            mode,
            staging: folder(&format!("{name}-staging")),
            target: Path::new("/var/lib/kubelet").join(format!("{name}-target")),
        }
    }

    /// The same volume, asked of another driver.
    pub(crate) fn with(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// Who is asked.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Makes a volume, stages and publishes it.
    pub(crate) async fn in_use(client: &Client, name: &str, mode: Mode) -> Self {
        let volume = Self::create(client, name, mode).await;
        volume.start().await;
        volume
    }

    pub(crate) async fn stage(&self) -> Answer<()> {
        self.client.clone().stage(&self.id, &self.staging, self.mode).await
    }

    pub(crate) async fn publish(&self) -> Answer<()> {
        self.publish_at(&self.target).await
    }

    pub(crate) async fn publish_at(&self, target: &Path) -> Answer<()> {
        self.client.clone().publish(&self.id, &self.staging, target, self.mode).await
    }

    /// Publishes with some fields of the request as `change` leaves them.
    pub(crate) async fn publish_as(
        &self,
        target: &Path,
        change: impl FnOnce(&mut csi::NodePublishVolumeRequest),
    ) -> Answer<()> {
        let mut request = csi::NodePublishVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.to_str().unwrap().into(),
            target_path: target.to_str().unwrap().into(),
            volume_capability: Some(self.mode.capability()),
            ..Default::default()
        };
        change(&mut request);
        self.client.clone().publish_with(request).await
    }

    pub(crate) async fn unpublish(&self) -> Answer<()> {
        self.client.clone().unpublish(&self.id, &self.target).await
    }

    pub(crate) async fn unstage(&self) -> Answer<()> {
        self.client.clone().unstage(&self.id, &self.staging).await
    }

    pub(crate) async fn stats(&self) -> Answer<csi::NodeGetVolumeStatsResponse> {
        self.client.clone().stats(&self.id, &self.target).await
    }

    pub(crate) async fn expand(&self, size: u64) -> Answer<u64> {
        self.client.clone().expand(&self.id, size, self.mode).await
    }

    /// Grows by that many extents of 4 MiB from the size that it was made with, and gives its size.
    pub(crate) async fn grow_by(&self, extents: u64) -> Answer<u64> {
        self.expand(self.size_and(extents)).await
    }

    /// The size that it was made with, and that many extents of 4 MiB.
    pub(crate) const fn size_and(&self, extents: u64) -> u64 {
        self.mode.size() + extents * 4 * MIB
    }

    pub(crate) async fn delete(&self) -> Answer<()> {
        self.client.clone().delete(&self.id).await
    }

    /// Stages and publishes.
    pub(crate) async fn start(&self) {
        self.stage().await.unwrap();
        self.publish().await.unwrap();
    }

    /// Unpublishes and unstages.
    pub(crate) async fn end(&self) {
        self.unpublish().await.unwrap();
        self.unstage().await.unwrap();
    }

    /// The LV as LVM's commands take it.
    pub(crate) fn lv(&self) -> String {
        format!("{VG}/{}", self.lv)
    }

    /// A path that LVM makes for it.
    pub(crate) fn device(&self) -> PathBuf {
        Path::new("/dev").join(self.lv())
    }

    /// Its name in device mapper.
    pub(crate) fn dm_name(&self) -> String {
        DmName::of(&VG.parse().unwrap(), &self.lv).as_str().to_owned()
    }

    /// Whoever writes to or reads from its device from now on gets an error, or finds it as it was.
    pub(crate) fn fail(&self, fails: bool) {
        let name = self.dm_name();
        if fails {
            sh(&format!("dmsetup table {name} > /table"));
            sh(&format!("dmsetup load {name} --table \"0 $(cut -d' ' -f2 /table) error\""));
        } else {
            sh(&format!("dmsetup load {name} < /table"));
        }
        sh(&format!("dmsetup suspend --noflush --nolockfs {name}; dmsetup resume {name}"));
    }

    /// Its disk fails while something is written in that folder of it, and its file system gives up.
    pub(crate) fn gives_up(&self, folder: &Path) {
        self.fail(true);
        let _ = std::fs::write(folder.join("lost"), vec![1; 1 << 20]);
        let _ = std::process::Command::new("sync").arg("-f").arg(folder).output();
    }

    /// Both paths that LVM makes for it.
    pub(crate) fn nodes(&self) -> [PathBuf; 2] {
        [self.device(), Path::new("/dev/mapper").join(self.dm_name())]
    }

    /// The letter of its state.
    pub(crate) fn state(&self) -> String {
        let tags = report("lvs", "lv_tags", &self.lv()).remove(0);
        tags.split(',').find_map(|tag| tag.strip_prefix("q.s=")).unwrap().to_owned()
    }

    /// Waits until its preparation is over.
    pub(crate) async fn prepared(&self) {
        until("the volume is prepared", async || self.state() == "f").await;
    }

    /// Exchanges one tag for another behind the driver's back; an empty one for none.
    pub(crate) fn retag(&self, from: &str, to: &str) {
        let mut arguments = vec!["-q".to_owned(), self.lv()];
        arguments.extend((!from.is_empty()).then(|| format!("--deltag={from}")));
        arguments.extend((!to.is_empty()).then(|| format!("--addtag={to}")));
        command("lvchange", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// A sum over all that is on it.
    pub(crate) fn content(&self) -> String {
        let sum = command("sha256sum", &[self.device().to_str().unwrap()]);
        sum.split(' ').next().unwrap().to_owned()
    }

    pub(crate) fn is_active(&self) -> bool {
        report("lvs", "lv_active", &self.lv()) == ["active"]
    }
}
