use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::lvm::{Command, EngineError};
use crate::types::{Bytes, ExtentSize, VgName, VgUuid};

/// Something that was asked of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Look,
    Open(VgName, Vec<PathBuf>),
    Fingerprint,
    Run(Command),
    Flush,
    BackUp(VgName),
}

/// Everything there is.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) vgs: Vec<Vg>,
    /// What a power cut would leave.
    durable: Vec<Vg>,
    pub(super) events: Vec<Event>,
    /// The groups that a change is under way in.
    pub(super) changing: BTreeSet<VgUuid>,
    pub(super) failing: Failing,
    uuids: u64,
}

/// What is to fail.
#[derive(Debug, Default)]
pub(super) struct Failing {
    pub(super) looks: bool,
    pub(super) flushes: bool,
    pub(super) backups: bool,
}

/// A volume group.
#[derive(Debug, Clone)]
pub(crate) struct Vg {
    pub(crate) uuid: VgUuid,
    pub(crate) name: String,
    pub(crate) seqno: u64,
    pub(crate) extent_size: ExtentSize,
    pub(crate) pvs: Vec<Pv>,
    pub(crate) lvs: Vec<Lv>,
    pub(crate) exported: bool,
    pub(crate) shared: bool,
    pub(crate) system_id: Option<String>,
    pub(crate) metadata_free: Bytes,
    /// How many LVs it may have; 0 for any number.
    pub(crate) max_lvs: u64,
}

/// A disk.
#[derive(Debug, Clone)]
pub(crate) struct Pv {
    pub(crate) uuid: String,
    pub(crate) device: PathBuf,
    pub(crate) extents: u64,
    /// Whether the disk is plugged in.
    pub(crate) present: bool,
    /// Whether it takes new extents.
    pub(crate) allocatable: bool,
    /// A second device that claims to be this disk.
    pub(crate) copy: Option<PathBuf>,
}

/// A logical volume.
#[derive(Debug, Clone)]
pub(crate) struct Lv {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) created: Option<SystemTime>,
    pub(crate) active: bool,
    pub(crate) open: bool,
    pub(crate) suspended: bool,
    pub(crate) origin: bool,
    pub(crate) kind: String,
}

/// A run of extents on one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The disk's place in [`Vg::pvs`].
    pub(crate) pv: usize,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Lv {
    pub(super) fn extents(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.count).sum()
    }
}

impl Vg {
    /// The LV of that name, which must be there.
    pub(crate) fn lv(&mut self, name: &str) -> &mut Lv {
        let lv = self.lvs.iter_mut().find(|lv| lv.name == name);
        lv.unwrap_or_else(|| panic!("the group has no LV {name}"))
    }

    /// The disk on that device, which must be there.
    pub(crate) fn pv(&mut self, device: &str) -> &mut Pv {
        let pv = self.pvs.iter_mut().find(|pv| pv.device == Path::new(device));
        pv.unwrap_or_else(|| panic!("the group has no disk {device}"))
    }

    /// Whether the disk with this place is one of `devices`, and there.
    pub(super) fn sees(&self, devices: &[PathBuf], pv: usize) -> bool {
        self.pvs[pv].present && devices.contains(&self.pvs[pv].device)
    }

    pub(super) fn free_on(&self, pv: usize) -> Vec<Piece> {
        let used = |extent: u64| {
            let pieces = self.lvs.iter().flat_map(|lv| &lv.pieces).filter(|piece| piece.pv == pv);
            pieces.into_iter().any(|piece| (piece.first..piece.first + piece.count).contains(&extent))
        };
        let free = (0..self.pvs[pv].extents).filter(|extent| !used(*extent));
        free.fold(Vec::new(), |pieces, extent| joined(pieces, Piece { pv, first: extent, count: 1 }))
    }

    pub(super) fn free(&self) -> u64 {
        let used: u64 = self.lvs.iter().map(Lv::extents).sum();
        self.pvs.iter().map(|pv| pv.extents).sum::<u64>() - used
    }
}

/// Adds a piece, to the last one where it goes on there.
pub(super) fn joined(mut pieces: Vec<Piece>, next: Piece) -> Vec<Piece> {
    match pieces.last_mut() {
        Some(last) if last.pv == next.pv && last.first + last.count == next.first => last.count += next.count,
        _ => pieces.push(next),
    }
    pieces
}

impl Machine {
    pub(super) fn uuid(&mut self) -> String {
        self.uuids += 1;
        format!("script-0000-0000-0000-0000-0000-{:06}", self.uuids)
    }

    pub(super) fn add_vg(&mut self, name: &str, disks: &[(&str, u64)]) -> VgUuid {
        let pv = |(device, extents): &(&str, u64)| Pv {
            uuid: self.uuid(),
            device: PathBuf::from(device),
            extents: *extents,
            present: true,
            allocatable: true,
            copy: None,
        };
        let pvs = disks.iter().map(pv).collect();
        let uuid: VgUuid = self.uuid().parse().unwrap();
        let vg = Vg {
            uuid: uuid.clone(),
            name: name.to_owned(),
            seqno: 1,
            extent_size: ExtentSize::new(Bytes::mib(4)).unwrap(),
            pvs,
            lvs: Vec::new(),
            max_lvs: 0,
            exported: false,
            shared: false,
            system_id: None,
            metadata_free: Bytes::new(520_192),
        };
        self.durable.push(vg.clone());
        self.vgs.push(vg);
        uuid
    }

    pub(super) fn vg(&mut self, name: &str) -> &mut Vg {
        let vg = self.vgs.iter_mut().find(|vg| vg.name == name);
        vg.unwrap_or_else(|| panic!("there is no group {name}"))
    }

    /// What a metadata area's header would show.
    pub(super) fn header(&self, device: &Path) -> Result<Vec<u8>, EngineError> {
        let on = |vg: &&Vg| vg.pvs.iter().any(|pv| pv.present && pv.device == device);
        let gone = || EngineError::disk(device, "read", std::io::ErrorKind::NotFound.into());
        let vg = self.vgs.iter().find(on).ok_or_else(gone)?;
        Ok(format!("{} {} {};", device.display(), vg.uuid, vg.seqno).into_bytes())
    }

    pub(super) fn flush(&mut self, devices: &[PathBuf]) {
        for vg in self.vgs.iter().filter(|vg| vg.pvs.iter().any(|pv| devices.contains(&pv.device))) {
            self.durable.retain(|old| old.uuid != vg.uuid);
            self.durable.push(vg.clone());
        }
    }

    pub(super) fn cut_power(&mut self) {
        self.vgs.clone_from(&self.durable);
        for lv in self.vgs.iter_mut().flat_map(|vg| &mut vg.lvs) {
            (lv.active, lv.open, lv.suspended) = (false, false, false);
        }
    }
}
