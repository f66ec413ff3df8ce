//! A claim with its pod, as its user sees it: what was asked for, what was answered, and what was written.

use std::ops::Range;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{Api, ResourceExt};
use tokio::time::sleep;

use super::marks::{self, Mark};
use super::patience::Patience;
use crate::scenarios::requests::{Claim, delete};
use crate::scenarios::volumes::{self, MIB, Mode, is_resized, pod, resize};
use crate::{Error, Space, driver, wait};

/// What all sizes are multiples of, so that a volume has just the size that was asked for.
pub(super) const EXTENT: u64 = 4 * MIB;

/// Before a pod is asked once more that could not be reached.
const REST: Duration = Duration::from_secs(2);

/// What a volume is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ext4,
    Xfs,
    Raw,
}

impl Kind {
    /// What the volumes of a slot are. Those that must be large are few.
    pub(super) fn of(slot: u64) -> Kind {
        match slot % 16 {
            6 => Kind::Xfs,
            number if number % 4 == 1 => Kind::Raw,
            _ => Kind::Ext4,
        }
    }

    /// The sizes that its volumes are asked for with, in extents.
    pub(super) fn extents(self) -> Range<u64> {
        match self {
            Kind::Ext4 => 8..17,
            Kind::Xfs => 80..97,
            Kind::Raw => 4..9,
        }
    }

    fn mode(self) -> Mode {
        match self {
            Kind::Ext4 | Kind::Xfs => Mode::Filesystem,
            Kind::Raw => Mode::Block,
        }
    }

    /// A class of the examples.
    fn class(self) -> &'static str {
        match self {
            Kind::Ext4 | Kind::Raw => driver::CLASS,
            Kind::Xfs => "quarry-xfs",
        }
    }
}

/// A claim that was bound, and its pod, both of one name.
pub(super) struct Volume {
    space: Space,
    patience: Patience,
    pub(super) name: String,
    kind: Kind,
    /// What was answered that it has, in bytes.
    pub(super) size: u64,
    marks: Vec<Mark>,
}

impl Volume {
    /// Makes claim and pod, and returns when the pod runs.
    pub(super) async fn begin(
        space: &Space,
        patience: &Patience,
        name: &str,
        kind: Kind,
        size: u64,
    ) -> Result<Volume, Error> {
        let (space, patience, name) = (space.clone(), patience.clone(), name.to_owned());
        let volume = Volume { space, patience, name, kind, size, marks: Vec::new() };
        volume.apply(&Claim::new(&volume.name, size, kind.mode()).class(kind.class()).manifest()).await?;
        volume.start_pod().await?;
        Ok(volume)
    }

    /// Has its pod write that stamp to its end, so that it is on the disk.
    pub(super) async fn write(&mut self, stamp: u64) -> Result<(), Error> {
        let mark = Mark::at_the_end_of(self.size, stamp);
        self.run("to write", &mark.to_write(self.kind.mode()), |_| true).await?;
        self.marks.push(mark);
        Ok(())
    }

    /// Asks for that size, and returns when it is answered that the volume has it.
    pub(super) async fn grow(&mut self, size: u64) -> Result<(), Error> {
        let what = format!("the claim {} to have {size} bytes", self.name);
        self.patience.try_until(&what, || resize(&self.space, &self.name, size)).await?;
        self.patience.until(&self.claims(), &self.name, &what, |claim| is_resized(claim, size)).await?;
        self.size = size;
        Ok(())
    }

    /// Deletes its pod, and returns when another one runs.
    pub(super) async fn replace_pod(&self) -> Result<(), Error> {
        self.delete_pod().await?;
        self.pod_is_gone().await?;
        self.start_pod().await
    }

    /// Fails unless its pod runs, and finds the size that was answered and all that was written.
    pub(super) async fn is_whole(&self) -> Result<(), Error> {
        self.pod_is_ready().await?;
        let (mode, marks) = (self.kind.mode(), &self.marks);
        let said = self.run("to look", &marks::to_look(mode, marks), marks::is_complete).await?;
        marks::holds(mode, self.size, marks, &said)
            .map_err(|error| Error::Other(format!("{} is not what it was: {error}", self.name)))
    }

    /// Deletes claim and pod, and returns when nothing of them is left in Kubernetes.
    pub(super) async fn end(&self) -> Result<(), Error> {
        let what = format!("{} to be deleted", self.name);
        let look = || volumes::volume(&self.space, &self.name);
        let volume = self.patience.try_until(&what, look).await?.name_any();
        let claims = self.claims();
        self.patience.try_until(&what, || delete(&claims, &self.name)).await?;
        self.delete_pod().await?;
        self.pod_is_gone().await?;
        let what = format!("the claim {} to be gone", self.name);
        self.patience.until(&claims, &self.name, &what, |claim| claim.is_none()).await?;
        let all: Api<PersistentVolume> = Api::all(self.space.client().clone());
        let what = format!("the volume {volume} of {} to be gone", self.name);
        self.patience.until(&all, &volume, &what, |volume| volume.is_none()).await.map(drop)
    }

    fn pods(&self) -> Api<Pod> {
        self.space.api()
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        self.space.api()
    }

    async fn apply(&self, manifest: &str) -> Result<(), Error> {
        let what = format!("{} to be applied", self.name);
        self.patience.try_until(&what, || self.space.apply(manifest)).await.map(drop)
    }

    async fn start_pod(&self) -> Result<(), Error> {
        self.apply(&pod(&self.name, &self.name, self.kind.mode(), "")).await?;
        self.pod_is_ready().await
    }

    async fn pod_is_ready(&self) -> Result<(), Error> {
        let what = format!("the pod {} to be ready", self.name);
        self.patience.until(&self.pods(), &self.name, &what, wait::is_pod_ready).await.map(drop)
    }

    async fn delete_pod(&self) -> Result<(), Error> {
        let (what, pods) = (format!("the pod {} to be deleted", self.name), self.pods());
        self.patience.try_until(&what, || delete(&pods, &self.name)).await
    }

    async fn pod_is_gone(&self) -> Result<(), Error> {
        let what = format!("the pod {} to be gone", self.name);
        self.patience.until(&self.pods(), &self.name, &what, |pod| pod.is_none()).await.map(drop)
    }

    /// Runs the shell's lines in the pod until they succeed and say something that is complete: what is cut off with a
    /// kubelet or a node is begun anew. One that is down is not asked all the time.
    async fn run(&self, what: &str, lines: &str, is_complete: fn(&str) -> bool) -> Result<String, Error> {
        let one = || async {
            let failed = match self.space.exec_ok(&self.name, &["sh", "-c", lines]).await {
                Ok(said) if is_complete(&said) => return Ok(said),
                Ok(said) => Error::other(format!("cut off after {said:?}")),
                Err(error) => error,
            };
            sleep(REST).await;
            Err(failed)
        };
        self.patience.try_until(&format!("{} {what}", self.name), one).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::chaos::SLOTS;

    #[test]
    fn there_are_volumes_of_every_kind_and_few_large_ones() {
        let count = |kind| (1..=SLOTS).filter(|slot| Kind::of(*slot) == kind).count();
        assert_eq!([Kind::Ext4, Kind::Xfs, Kind::Raw].map(count), [20, 2, 8]);
    }
}
