use std::path::PathBuf;
use std::time::SystemTime;

use super::rows;
use super::state::{Lv, Machine, Piece, Vg, joined};
use crate::lvm::{Command, Reply};
use crate::types::{LvName, PeRange, VgName};

/// Does to the machine what LVM would, and says what LVM would say.
pub(super) fn execute(machine: &mut Machine, devices: &[PathBuf], vg: &VgName, command: &Command) -> Reply {
    let uuid = machine.uuid();
    let seen = |one: &&mut Vg| one.name == vg.as_str() && (0..one.pvs.len()).any(|pv| one.sees(devices, pv));
    let Some(vg) = machine.vgs.iter_mut().find(seen) else {
        return failure(format!("Volume group \"{vg}\" not found"));
    };
    let done = match command {
        Command::Group | Command::Volumes | Command::Volume(_) | Command::Segments(_) => {
            report(vg, devices, command)
        }
        _ if vg.exported => Err(format!("Volume group {} is exported", vg.name)),
        _ => change(vg, devices, uuid, command).map(|()| Reply { success: true, ..Reply::default() }),
    };
    done.unwrap_or_else(failure)
}

fn failure(message: String) -> Reply {
    Reply { messages: vec![message], ..Reply::default() }
}

fn report(vg: &Vg, devices: &[PathBuf], command: &Command) -> Result<Reply, String> {
    let mut reply = Reply { success: true, ..Reply::default() };
    match command {
        Command::Volumes => {
            reply.lvs = vg.lvs.iter().map(|lv| rows::lv(vg, lv, devices)).collect();
            reply.lvs.sort_by(|one, two| one.name.cmp(&two.name));
        }
        Command::Volume(name) => {
            let mut row = rows::lv(vg, &vg.lvs[find(vg, name)?], devices);
            row.vg = Some(rows::vg(vg, devices));
            reply.lvs = vec![row];
        }
        Command::Segments(name) => reply.segments = rows::segments(vg, &vg.lvs[find(vg, name)?]),
        _ => {
            reply.vgs = vec![rows::vg(vg, devices)];
            reply.unallocatable = rows::unallocatable(vg);
        }
    }
    Ok(reply)
}

fn find(vg: &Vg, name: &LvName) -> Result<usize, String> {
    let found = vg.lvs.iter().position(|lv| lv.name == name.as_str());
    found.ok_or_else(|| format!("Failed to find logical volume \"{}/{name}\"", vg.name))
}

fn change(vg: &mut Vg, devices: &[PathBuf], uuid: String, command: &Command) -> Result<(), String> {
    match command {
        Command::Create { name, extents, tags } => {
            whole(vg, devices)?;
            if find(vg, name).is_ok() {
                return Err(format!(
                    "Logical Volume \"{name}\" already exists in volume group \"{}\"",
                    vg.name
                ));
            }
            let pieces = allocate(vg, devices, extents.get(), &[])?;
            let tags = tags.iter().cloned().collect();
            vg.lvs.push(new_lv(uuid, name, pieces, tags));
        }
        Command::Extend { name, to, from } => {
            whole(vg, devices)?;
            let lv = find(vg, name)?;
            let has: u64 = vg.lvs[lv].pieces.iter().map(|piece| piece.count).sum();
            let by = to.get().checked_sub(has).filter(|by| *by > 0);
            let by = by.ok_or_else(|| {
                format!("New size given ({to} extents) not larger than existing size ({has} extents)")
            })?;
            let pieces = allocate(vg, devices, by, from)?;
            let old = std::mem::take(&mut vg.lvs[lv].pieces);
            vg.lvs[lv].pieces = pieces.into_iter().fold(old, joined);
        }
        Command::Retag { name, remove, add } => {
            whole(vg, devices)?;
            let lv = find(vg, name)?;
            vg.lvs[lv].tags.remove(remove);
            vg.lvs[lv].tags.insert(add.clone());
        }
        Command::Remove(name) => {
            let lv = find(vg, name)?;
            if vg.lvs[lv].open {
                return Err(format!("Logical volume {}/{name} in use.", vg.name));
            }
            vg.lvs.remove(lv);
        }
        Command::Activate(name) | Command::Refresh(name) => load(vg, devices, name, command)?,
        Command::Group | Command::Volumes | Command::Volume(_) | Command::Segments(_) => {}
    }
    vg.seqno += command.commits();
    Ok(())
}

/// LVM changes the metadata of no group that lacks a disk; it only removes LVs there.
fn whole(vg: &Vg, devices: &[PathBuf]) -> Result<(), String> {
    if (0..vg.pvs.len()).all(|pv| vg.sees(devices, pv)) {
        return Ok(());
    }
    Err(format!("Cannot change VG {} while PVs are missing.", vg.name))
}

fn load(vg: &mut Vg, devices: &[PathBuf], name: &LvName, command: &Command) -> Result<(), String> {
    let lv = find(vg, name)?;
    if rows::is_partial(vg, &vg.lvs[lv], devices) {
        return Err(format!("Refusing activation of partial LV {}/{name}.", vg.name));
    }
    let lv = &mut vg.lvs[lv];
    lv.active |= matches!(command, Command::Activate(_));
    lv.suspended = false;
    Ok(())
}

fn new_lv(uuid: String, name: &LvName, pieces: Vec<Piece>, tags: std::collections::BTreeSet<String>) -> Lv {
    Lv {
        uuid,
        name: name.as_str().to_owned(),
        pieces,
        tags,
        created: Some(SystemTime::now()),
        active: true,
        open: false,
        suspended: false,
        origin: false,
        kind: "linear".to_owned(),
    }
}

/// Takes free extents, the first ones there are, or of those in `from`.
fn allocate(vg: &Vg, devices: &[PathBuf], wanted: u64, from: &[PeRange]) -> Result<Vec<Piece>, String> {
    let allowed = |pv: usize, extent: u64| {
        let device = vg.pvs[pv].device.to_str().unwrap_or_default();
        from.is_empty() || from.iter().any(|r| r.device == device && (r.first..=r.last).contains(&extent))
    };
    let mut taken: Vec<Piece> = Vec::new();
    let mut left = wanted;
    for pv in (0..vg.pvs.len()).filter(|pv| vg.sees(devices, *pv) && vg.pvs[*pv].allocatable) {
        let free = vg.free_on(pv).into_iter().flat_map(|piece| piece.first..piece.first + piece.count);
        for extent in free.filter(|extent| allowed(pv, *extent)) {
            if left > 0 {
                taken = joined(taken, Piece { pv, first: extent, count: 1 });
                left -= 1;
            }
        }
    }
    if left == 0 && wanted > 0 {
        return Ok(taken);
    }
    Err(format!(
        "Volume group \"{}\" has insufficient free space ({} extents): {wanted} required.",
        vg.name,
        wanted - left
    ))
}
