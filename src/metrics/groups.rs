use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::lvm::{Group, Groups, View};
use crate::types::{Bytes, Extents, GroupState, Owner, VgUuid, VolumeState};
use crate::volume::Volumes;

/// Shows the volume groups, and how many volumes are in them.
pub struct GroupMetrics {
    groups: Arc<Groups>,
    volumes: Arc<Volumes>,
}

impl fmt::Debug for GroupMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMetrics").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, EncodeLabelSet)]
struct Vg {
    vg: String,
    uuid: String,
}

#[derive(Debug, Clone, EncodeLabelSet)]
struct InState {
    vg: String,
    uuid: String,
    state: &'static str,
}

/// What is known of one group at the moment of a scrape.
struct Shown {
    label: Vg,
    healthy: bool,
    usable: Bytes,
    reserve: Bytes,
    waiting: usize,
    /// What was read of it last.
    view: Option<Arc<View>>,
}

/// A metric that each group has one of.
struct PerGroup {
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    value: fn(&Shown) -> Option<u64>,
}

const PER_GROUP: [PerGroup; 8] = [
    bytes("vg_size", "The size of the volume group", |vg| vg.size(|view| view.vg.extents)),
    bytes(
        "vg_free",
        "What no logical volume has of the group; growth may use all of it but what lies on disks that take no new extents",
        |vg| vg.size(|view| view.vg.free),
    ),
    bytes("vg_reserve", "What the creation of volumes leaves free", |vg| Some(vg.reserve.get())),
    bytes(
        "vg_usable",
        "What the creation of volumes may use, as GetCapacity answers; nothing in a group that takes no change",
        |vg| Some(vg.usable.get()),
    ),
    bytes("vg_metadata_size", "The size of the smallest metadata area of the group", |vg| {
        vg.view.as_ref().map(|view| view.vg.metadata_size.get())
    }),
    bytes("vg_metadata_free", "What is free of that area", |vg| {
        vg.view.as_ref().map(|view| view.vg.metadata_free.get())
    }),
    PerGroup {
        name: "vg_healthy",
        unit: None,
        help: "Whether volumes can be made in the group: 0 while it is gone, stuck or takes no change",
        value: |vg| Some(u64::from(vg.healthy)),
    },
    PerGroup {
        name: "vg_writers_waiting",
        unit: None,
        help: "Callers that wait for their turn to change the group",
        value: |vg| u64::try_from(vg.waiting).ok(),
    },
];

const fn bytes(name: &'static str, help: &'static str, value: fn(&Shown) -> Option<u64>) -> PerGroup {
    PerGroup { name, unit: Some(Unit::Bytes), help, value }
}

impl Shown {
    fn size(&self, extents: impl Fn(&View) -> Extents) -> Option<u64> {
        self.view.as_ref().map(|view| view.vg.extent_size.size_of(extents(view)).get())
    }

    /// How many volumes are in each state.
    fn volumes(&self) -> impl Iterator<Item = (VolumeState, u64)> {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for lv in self.view.iter().flat_map(|view| view.lvs()) {
            let state = match lv.owner() {
                Ok(Owner::Volume(tags)) => tags.state,
                Ok(Owner::Growth(_)) => VolumeState::Growing,
                Ok(Owner::Foreign) | Err(_) => continue,
            };
            *counts.entry(state.word()).or_default() += 1;
        }
        VolumeState::ALL.into_iter().map(move |state| (state, counts.get(state.word()).copied().unwrap_or(0)))
    }
}

impl GroupMetrics {
    /// Shows these groups.
    pub const fn new(groups: Arc<Groups>, volumes: Arc<Volumes>) -> Self {
        Self { groups, volumes }
    }

    fn shown(&self) -> Vec<Shown> {
        let states: BTreeMap<VgUuid, GroupState> =
            self.volumes.states().into_iter().map(|state| (state.uuid.clone(), state)).collect();
        self.groups.all().iter().filter_map(|group| shown(group, states.get(group.uuid()))).collect()
    }
}

/// `None` for a group that was never seen.
fn shown(group: &Arc<Group>, state: Option<&GroupState>) -> Option<Shown> {
    let view = group.last_view().ok();
    let name = group.name().or_else(|| group.earlier_view().map(|view| view.vg.name.clone()))?;
    Some(Shown {
        label: Vg { vg: name.to_string(), uuid: group.uuid().to_string() },
        healthy: state.is_some_and(|state| state.trouble.is_none()),
        usable: state.map_or(Bytes::ZERO, |state| state.available),
        reserve: group.reserve(),
        waiting: group.waiting(),
        view,
    })
}

impl Collector for GroupMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let shown = self.shown();
        for metric in &PER_GROUP {
            let mut family = encoder.encode_descriptor(
                metric.name,
                metric.help,
                metric.unit.as_ref(),
                MetricType::Gauge,
            )?;
            for vg in &shown {
                if let Some(value) = (metric.value)(vg) {
                    ConstGauge::new(value).encode(family.encode_family(&vg.label)?)?;
                }
            }
        }
        let help = "Volumes in the group, by state";
        let mut family = encoder.encode_descriptor("volumes", help, None, MetricType::Gauge)?;
        for vg in shown.iter().filter(|vg| vg.view.is_some()) {
            for (state, count) in vg.volumes() {
                let Vg { vg, uuid } = vg.label.clone();
                let label = InState { vg, uuid, state: state.word() };
                ConstGauge::new(count).encode(family.encode_family(&label)?)?;
            }
        }
        Ok(())
    }
}
